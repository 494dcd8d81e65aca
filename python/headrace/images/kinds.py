"""What a part of a sample is: a PIL image, a tensor that counts as an image, one of torchvision's tv_tensors, or else.

torchvision is recognised where it is loaded, never imported.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from PIL import Image


class Kind(enum.Enum):
    """A part's kind; those of tensors but PURE and IMAGE are torchvision's tv_tensors."""

    PIL = enum.auto()
    PURE = enum.auto()  # a tensor that may be an image or anything else
    IMAGE = enum.auto()  # a tv_tensors.Image, or a tensor that ToImage made
    VIDEO = enum.auto()
    MASK = enum.auto()
    BOXES = enum.auto()
    KEYPOINTS = enum.auto()
    OWN = enum.auto()  # a tv_tensor of the user's own class
    OTHER = enum.auto()  # no image and no tensor: a label, a name, an array


_TV_TENSORS = {
    "Image": Kind.IMAGE,
    "Video": Kind.VIDEO,
    "Mask": Kind.MASK,
    "BoundingBoxes": Kind.BOXES,
    "KeyPoints": Kind.KEYPOINTS,
}
# A plain tensor with this attribute is an image whatever stands beside it, as torchvision's tv_tensors.Image is. As
# there, the result of an operation of torch on it is a pure tensor again, unless a transform made it.
_MARK = "_headrace_image"


def tv_class(name: str) -> type | None:
    """A class of torchvision.tv_tensors; None where that is not loaded or has none of this name."""
    found: type | None = getattr(sys.modules.get("torchvision.tv_tensors"), name, None)
    return found


def kind_of(part: Any) -> Kind:
    """The kind of a part of a sample."""
    if isinstance(part, Image.Image):
        return Kind.PIL
    if not isinstance(part, torch.Tensor):
        return Kind.OTHER
    if type(part) is not torch.Tensor and (base := tv_class("TVTensor")) is not None and isinstance(part, base):
        classes = ((tv_class(name), kind) for name, kind in _TV_TENSORS.items())
        return next((kind for cls, kind in classes if cls is not None and isinstance(part, cls)), Kind.OWN)
    return Kind.IMAGE if hasattr(part, _MARK) else Kind.PURE


def is_pure_tensor(part: Any) -> bool:
    """Whether it is a tensor that does not say of itself what it holds."""
    return kind_of(part) is Kind.PURE


def has_image(parts: Iterable[Any]) -> bool:
    """Whether a part says of itself that it is an image or a video."""
    return any(kind_of(part) in (Kind.PIL, Kind.IMAGE, Kind.VIDEO) for part in parts)


def as_image(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as a plain tensor that counts as an image: (..., C, H, W), a channel added to (H, W).

    Raises:
        ValueError: fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(f"Tensor must be 2D or higher, got {tensor.ndim}D tensor.")
    image = as_pure(tensor[None] if tensor.ndim == 2 else tensor)
    setattr(image, _MARK, True)
    return image


def as_pure(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as a pure tensor, which is another object."""
    return tensor.as_subclass(torch.Tensor)


def on_values(function: Callable[[torch.Tensor], torch.Tensor], tensor: torch.Tensor) -> torch.Tensor:
    """`function` of a tensor's values; what it makes is of the tensor's own kind again."""
    return function(tensor) if is_pure_tensor(tensor) else of_kind(function(as_pure(tensor)), tensor)


def of_kind(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A pure tensor's values as a tensor of the kind of `like`."""
    if is_pure_tensor(like):
        return tensor
    if type(like) is torch.Tensor:
        return as_image(tensor)
    wrapped: torch.Tensor = sys.modules["torchvision.tv_tensors"].wrap(tensor, like=like)
    return wrapped
