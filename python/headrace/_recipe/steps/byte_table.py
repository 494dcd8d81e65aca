"""The tensor steps of a recipe as one callable of the user's own transforms, and their table of 256 byte values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from headrace._base.types import Array

TensorStep = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class FromArray:
    """Wraps a transform that takes images but not tensors: passes the bytes as an array (H, W, C)."""

    transform: Callable[[Array], torch.Tensor]

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return self.transform(image.permute(1, 2, 0).numpy())


@dataclass(frozen=True)
class Pointwise:
    """Maps a uint8 tensor (C, H, W) to the output, a plain tensor (C, H, W): `steps` in order, then `dtype` if any."""

    steps: tuple[TensorStep, ...]
    dtype: torch.dtype | None

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            image = step(image)
        image = image.as_subclass(torch.Tensor)
        return image if self.dtype is None else image.to(self.dtype)


def all_bytes(channels: int) -> torch.Tensor:
    """Returns an image of the 256 byte values in each channel: uint8, (channels, 1, 256)."""
    return torch.arange(256, dtype=torch.uint8, device="cpu").repeat(channels, 1, 1)


def make_byte_table(pointwise: Callable[[torch.Tensor], torch.Tensor], channels: int) -> torch.Tensor:
    """Returns ``pointwise`` of the 256 byte values, in its output dtype: (channels, 256), contiguous."""
    return pointwise(all_bytes(channels)).reshape(channels, 256).contiguous()
