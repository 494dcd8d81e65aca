"""What all transforms share: being a module with a readable repr, and being composed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn


class Transform(nn.Module):
    """Base of the transforms; its repr lists the public attributes, as torchvision v2's does."""

    def extra_repr(self) -> str:
        shown = (bool, int, float, str, tuple, list, enum.Enum, torch.dtype)
        public = {k: v for k, v in vars(self).items() if not k.startswith("_") and k != "training"}
        return ", ".join(f"{k}={v}" for k, v in public.items() if isinstance(v, shown))


class Compose(Transform):
    """Applies `transforms` one after the other.

    Raises:
        TypeError: not a sequence. ValueError: an empty one.
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        super().__init__()
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence of callables")
        if not transforms:
            raise ValueError("Pass at least one transform")
        self.transforms = transforms

    def forward(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image

    def extra_repr(self) -> str:
        return "\n".join(f"    {transform}" for transform in self.transforms)
