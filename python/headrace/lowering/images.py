"""Keeps the transforms that are lowered on PIL images alone from tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.lowering.builder import Builder

#: Appends a transform's steps; gets the transform and whose class it is, returns what `explain` shows.
Lower = Callable[[Builder, Any, str], str]

#: The same on a tensor of bytes in torchvision v2, but for filters.
_ON_BYTES = {"Resize", "RandomResizedCrop", "CenterCrop", "RandomCrop", "Pad"}
_MIXES_PIXELS = {"Resize", "RandomResizedCrop", "Grayscale", "RandomGrayscale", "ColorJitter"}


def on_images(lower: Lower) -> Lower:
    """The same where the image is still a PIL image, or bytes that torchvision treats alike; else a refusal."""

    def checked(builder: Builder, transform: Any, home: str) -> str:
        name = type(transform).__name__
        if builder.values is not None and not (home == "v2" and builder.holds_bytes and name in _ON_BYTES):
            why = "other pixels than Pillow's" if name in _MIXES_PIXELS else "no native twin"
            builder.refuse(
                f"works on a tensor here, through a kernel of torch with {why}; put it before {builder.converter}"
            )
        return lower(builder, transform, home)

    return checked
