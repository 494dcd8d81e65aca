"""Refuses, on a tensor, the transforms whose native twin works on PIL images, unless they have one for bytes, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from headrace._lowering.builder import Builder

#: Appends the steps of a transform to a builder; the string is the library of its class (see `transform_library`).
#: Returns its line of `explain`.
Lower = Callable[[Builder, Any, str], str]

#: What torchvision does on a uint8 tensor as on a PIL image, except for the filters.
_ON_BYTES = {
    "v1": {"Resize", "RandomResizedCrop", "CenterCrop"},
    "v2": {"Resize", "RandomResizedCrop", "CenterCrop", "RandomCrop", "Pad"},
}
_MIXES_PIXELS = {"Resize", "RandomResizedCrop", "Grayscale", "RandomGrayscale", "ColorJitter"}


def refuse_tensors(lower: Lower) -> Lower:
    """Wraps `lower` to refuse tensors, except uint8 tensors that torchvision treats like PIL images."""

    def lower_image(builder: Builder, transform: object, library: str) -> str:
        name = type(transform).__name__
        alike = _gets_byte_tensor(builder, library) and name in _ON_BYTES[library]
        if builder.values is not None and not alike:
            why = "other pixels than Pillow's" if name in _MIXES_PIXELS else "no native twin"
            builder.refuse(
                f"works on a tensor here, through a kernel of torch with {why}; put it before {builder.converter}"
            )
        return lower(builder, transform, library)

    return lower_image


def lower_either(of_images: Lower, of_bytes: Lower) -> Lower:
    """Wraps two functions: `of_bytes` lowers the transform of a uint8 tensor, which torchvision's own objects take."""
    checked = refuse_tensors(of_images)

    def lower(builder: Builder, transform: object, library: str) -> str:
        if _gets_byte_tensor(builder, library):
            return of_bytes(builder, transform, library)
        return checked(builder, transform, library)

    return lower


def _gets_byte_tensor(builder: Builder, library: str) -> bool:
    """Whether a transform of torchvision gets a uint8 tensor, of the same class as it returns."""
    plain = type(builder.values) is torch.Tensor  # of others, such as tv_tensors, version 1 makes plain ones
    return builder.holds_bytes and (library == "v2" or (library == "v1" and plain))
