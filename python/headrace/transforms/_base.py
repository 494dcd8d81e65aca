"""What transforms share: being a module with a readable repr, a probability, what they take, and being composed."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import torch
from PIL import Image
from torch import nn


class Transform(nn.Module):
    """Base of the transforms; its repr lists the public attributes, as torchvision v2's does."""

    def extra_repr(self) -> str:
        shown = (bool, int, float, str, tuple, list, enum.Enum, torch.dtype)
        public = {k: v for k, v in vars(self).items() if not k.startswith("_") and k != "training"}
        return ", ".join(f"{k}={v}" for k, v in public.items() if isinstance(v, shown))


def pil_image(image: Any, transform: Transform) -> Image.Image:
    """The image; TypeError with a remedy where it is no PIL image."""
    if not isinstance(image, Image.Image):
        raise TypeError(
            f"img should be PIL Image. Got {type(image)}; put {type(transform).__name__} before the step that makes a "
            "tensor"
        )
    return image


def torch_place(n: int) -> int:
    """A number in [0, n) from torch's global generator."""
    return int(torch.randint(0, n, size=(1,)).item())


class RandomTransform(Transform):
    """Base of those that do something with probability `p`.

    Raises:
        ValueError: p is outside [0, 1].
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        self.p = p


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
