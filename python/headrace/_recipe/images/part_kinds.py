"""The kind of a sample's part: PIL image, tensor that counts as an image, torchvision's tv_tensor, or anything else.

torchvision's classes are recognised if it is loaded; it is never imported.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from PIL import Image


class Kind(enum.Enum):
    """The kind of a part of a sample. All tensor kinds except PURE and IMAGE are torchvision's tv_tensors."""

    PIL = enum.auto()
    PURE = enum.auto()  # a plain tensor, which may hold an image or anything else
    IMAGE = enum.auto()  # a tv_tensors.Image, or a tensor that ToImage made
    VIDEO = enum.auto()
    MASK = enum.auto()
    BOXES = enum.auto()
    KEYPOINTS = enum.auto()
    OWN = enum.auto()  # a tv_tensor of the user's own class
    OTHER = enum.auto()  # neither an image nor a tensor: a label, a name, an array


_TV_TENSORS = {
    "Image": Kind.IMAGE,
    "Video": Kind.VIDEO,
    "Mask": Kind.MASK,
    "BoundingBoxes": Kind.BOXES,
    "KeyPoints": Kind.KEYPOINTS,
}
# A plain tensor with this attribute is an image, whatever else the sample holds, like a tv_tensors.Image. Also like it,
# a torch operation on it returns a pure tensor; only transforms keep the mark.
_MARK = "_headrace_image"


def tv_class(name: str) -> type | None:
    """Returns a class of torchvision.tv_tensors; None if that module is not loaded or has no such class."""
    found: type | None = getattr(sys.modules.get("torchvision.tv_tensors"), name, None)
    return found


def kind_of(part: object) -> Kind:
    """Returns the kind of a part of a sample."""
    if isinstance(part, Image.Image):
        return Kind.PIL
    if not isinstance(part, torch.Tensor):
        return Kind.OTHER
    if type(part) is not torch.Tensor and (base := tv_class("TVTensor")) is not None and isinstance(part, base):
        classes = ((tv_class(name), kind) for name, kind in _TV_TENSORS.items())
        return next((kind for cls, kind in classes if cls is not None and isinstance(part, cls)), Kind.OWN)
    return Kind.IMAGE if hasattr(part, _MARK) else Kind.PURE


def is_pure_tensor(part: object) -> bool:
    """Whether the part is a plain tensor without the mark of an image."""
    return kind_of(part) is Kind.PURE


def has_image(parts: Iterable[object]) -> bool:
    """Whether any part is a PIL image, an image tensor or a video."""
    return any(kind_of(part) in (Kind.PIL, Kind.IMAGE, Kind.VIDEO) for part in parts)


def as_image(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the same values as a plain tensor (..., C, H, W), marked as an image; adds a channel to (H, W).

    Raises:
        ValueError: `tensor` has fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(f"Tensor must be 2D or higher, got {tensor.ndim}D tensor.")
    image = as_pure(tensor[None] if tensor.ndim == 2 else tensor)
    setattr(image, _MARK, True)
    return image


def as_pure(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a new pure tensor that shares the same values."""
    return tensor.as_subclass(torch.Tensor)


def map_values(function: Callable[[torch.Tensor], torch.Tensor], tensor: torch.Tensor) -> torch.Tensor:
    """Applies `function` to a tensor's values and returns the result as a tensor of the same kind."""
    return function(tensor) if is_pure_tensor(tensor) else wrap_as(function(as_pure(tensor)), tensor)


def wrap_as(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Returns a pure tensor's values as a tensor of the same kind as `like`."""
    if is_pure_tensor(like):
        return tensor
    if type(like) is torch.Tensor:
        return as_image(tensor)
    wrapped: torch.Tensor = sys.modules["torchvision.tv_tensors"].wrap(tensor, like=like)
    return wrapped


def as_kinds(made: Any, kinds: Any) -> Any:
    """Returns a sample's tensors as objects of these classes."""
    if isinstance(made, torch.Tensor):
        return made.as_subclass(kinds)
    if isinstance(made, Mapping):
        return {key: as_kinds(one, kinds[key]) for key, one in made.items()}
    return [as_kinds(one, kind) for one, kind in zip(made, kinds, strict=True)]
