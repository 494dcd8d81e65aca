"""Keeps the transforms that are lowered on PIL images alone from tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.lowering.builder import Builder

#: Appends a transform's steps; gets the transform and whose class it is, returns what `explain` shows.
Lower = Callable[[Builder, Any, str], str]

_MIXES_PIXELS = {"Resize", "RandomResizedCrop", "Grayscale", "RandomGrayscale", "ColorJitter"}


def on_images(lower: Lower) -> Lower:
    """The same where the image is still a PIL image; a refusal where it is a tensor."""

    def checked(builder: Builder, transform: Any, home: str) -> str:
        if builder.values is not None:
            why = "other pixels than Pillow's" if type(transform).__name__ in _MIXES_PIXELS else "no native twin"
            builder.refuse(
                f"works on a tensor here, through a kernel of torch with {why}; put it before {builder.converter}"
            )
        return lower(builder, transform, home)

    return checked
