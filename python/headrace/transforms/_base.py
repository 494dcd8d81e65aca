"""Base classes of the transforms: which parts of a sample they change or refuse, their repr, their probability."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, TypeVar

import torch
from PIL import Image
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from headrace._base.checks import explained
from headrace._base.safe_exceptions import add_note
from headrace._recipe.images.part_kinds import Kind, has_image, is_pure_tensor, kind_of

Sizes = TypeVar("Sizes", bound=tuple[int, ...])

#: The random parameters of one sample, by name: `make_params` draws them, `transform` reads them.
Params: TypeAlias = dict[str, Any]


class Transform(nn.Module):
    """Base class of the transforms: changes the images of a sample and returns the other parts unchanged.

    A sample is an image, or any nesting of tuples, lists and dicts with images in it; several arguments are treated as
    a tuple. As in torchvision v2, these parts are images: PIL images, tv_tensors.Image and tensors made by ToImage. If
    a sample has none of these, its first tensor is the image. Random parameters are drawn once and used for all images
    of the sample. A subclass overrides `transform`, and `make_params` or `check_inputs` if needed.

    Raises:
        TypeError: when called, if a part has to be changed but its type is not supported.
    """

    #: Types, or predicates, of the parts that the transform considers; all other parts pass unchanged.
    _transformed_types: ClassVar[tuple[type | Callable[[object], bool], ...]] = (torch.Tensor, Image.Image)
    #: Of these parts, `transform` changes the kinds in `_takes` (None: all), leaves those in `_passes` unchanged, and
    #: refuses the others.
    _takes: ClassVar[frozenset[Kind] | None] = None
    _passes: ClassVar[frozenset[Kind]] = frozenset()
    _in_torchvision: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls) and cls.__module__.startswith("headrace."):
            type.__setattr__(cls, "__init__", explained()(vars(cls)["__init__"]))  # the declared type stays

    def check_inputs(self, flat_inputs: list[object]) -> None:
        """Validates the parts of a sample; raises before any random number is drawn."""

    def make_params(self, flat_inputs: list[object]) -> Params:
        """Draws the random parameters; `flat_inputs` are the parts to change."""
        return {}

    def transform(self, inpt: Any, params: Params) -> object:
        """Returns the changed part."""
        raise NotImplementedError

    def forward(self, *inputs: object) -> object:
        sample = inputs if len(inputs) > 1 else inputs[0]
        parts, tree = tree_flatten(sample)
        self.check_inputs(parts)
        changed = self._find_changed(parts)
        if not self._is_applied():
            return sample
        params = self.make_params([part for part, yes in zip(parts, changed, strict=True) if yes])
        made = [self.transform(part, params) if yes else part for part, yes in zip(parts, changed, strict=True)]
        return tree_unflatten(made, tree)

    def _is_applied(self) -> bool:
        return True

    def _find_changed(self, parts: list[object]) -> list[bool]:
        """Returns for each part whether to change it. Raises TypeError if its type is not supported."""
        changed = []
        takes_pure = not has_image(parts)
        for part in parts:
            yes = any(isinstance(part, one) if isinstance(one, type) else one(part) for one in self._transformed_types)
            if yes and is_pure_tensor(part):  # only the first one is an image, and only if no other part is
                yes, takes_pure = takes_pure, False
            changed.append(yes and self._takes_or_refuses(part))
        return changed

    def _takes_or_refuses(self, part: object) -> bool:
        """Returns whether to change this part; False if it passes unchanged. Raises TypeError for a refused kind."""
        kind = kind_of(part)
        if self._takes is None or kind in self._takes:
            return True
        if kind in self._passes:
            return False
        name = type(self).__name__
        there = f"use torchvision.transforms.v2.{name}, which takes it; headrace.DataLoader runs that class as well"
        if kind in (Kind.PURE, Kind.IMAGE):
            remedy = f"put {name} before the step that makes a tensor"
            raise TypeError(
                f"img should be PIL Image. Got {type(part)}; {remedy}{f', or {there}' if self._in_torchvision else ''}"
            )
        raise TypeError(
            f"headrace.transforms.{name} cannot change a {type(part).__name__}, and unchanged it would no longer match "
            f"the image; {there if self._in_torchvision else 'pass the image alone'}"
        )

    def extra_repr(self) -> str:
        shown = (bool, int, float, str, tuple, list, enum.Enum)
        public = {k: v for k, v in vars(self).items() if not k.startswith("_") and k != "training"}
        return ", ".join(f"{k}={v}" for k, v in public.items() if isinstance(v, shown))


class RandomTransform(Transform):
    """Base class of the transforms that are applied with probability `p`.

    Raises:
        ValueError: `p` is outside [0, 1].
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            error = ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
            remedy = "pass a probability, such as 0.5"
            add_note(error, f"p={p!r} was given: {remedy}", remedy)
            raise error
        self.p = p

    def _is_applied(self) -> bool:
        return not torch.rand(1) >= self.p


PIL_ALONE = frozenset({Kind.PIL})
#: Annotations of an image. A transform that moves no pixel leaves them unchanged.
BESIDE_IMAGES = frozenset({Kind.MASK, Kind.BOXES, Kind.KEYPOINTS})


def torch_position(n: int) -> int:
    """Returns a random integer in [0, n) from torch's global generator."""
    return int(torch.randint(0, n, size=(1,)).item())


def channels_height_width(image: Any) -> tuple[int, int, int]:
    """Returns (C, H, W) of a PIL image or of a tensor (..., C, H, W) or (H, W)."""
    if isinstance(image, Image.Image):
        return len(image.getbands()), image.height, image.width
    if image.ndim < 2:
        raise TypeError(f"Input tensor should have at least two dimensions, but got {image.ndim}")
    return (1, *image.shape) if image.ndim == 2 else tuple(image.shape[-3:])


def common_shape(images: list[object]) -> tuple[int, int, int]:
    """Returns (C, H, W) of the images. Raises TypeError if there are none, ValueError if they differ."""
    shapes = {channels_height_width(image) for image in images}
    if not shapes:
        raise TypeError("No image or video was found in the sample")
    channels, height, width = _only_size(shapes, "CxHxW")
    return channels, height, width


def common_size(images: list[object]) -> tuple[int, int]:
    """Returns (H, W) of the images. Raises TypeError if there are none, ValueError if they differ."""
    sizes = {channels_height_width(image)[1:] for image in images}
    if not sizes:
        raise TypeError("No image, video, mask, bounding box of keypoint was found in the sample")
    height, width = _only_size(sizes, "HxW")
    return height, width


def _only_size(found: set[Sizes], axes: str) -> Sizes:
    if len(found) > 1:
        listed = ", ".join(f"'{one}'" for one in sorted(found))
        raise ValueError(f"Found multiple {axes} dimensions in the sample: {listed}")
    return found.pop()
