"""Lowers a Compose of albumentations: its geometry to steps with OpenCV's resize, its values to a table."""

from __future__ import annotations

import copy
import functools
import math
import operator
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import torch

import headrace._recipe.steps.steps as S
from headrace._base.originals.originality import is_own
from headrace._lowering.builder import Builder, repr_of
from headrace._lowering.families.geometry import area_and_ratio
from headrace._lowering.families.pointwise import add_pointwise, begin_tensor
from headrace._lowering.libraries.albumentations_wrappers import is_of_albumentations
from headrace._recipe.arithmetic import opencv_rule
from headrace._recipe.steps.draw_columns import Column

#: The uniform number that puts a crop, or an image in its padding, at the centre: an odd pixel is right and below.
_CENTRE = math.nextafter(0.5, 0.0)

#: Version of albumentations -> known transforms that follow other rules there. albumentationsx, 2.5, draws crops
#: without tries, and changes brightness as torchvision does.
_VERSIONS: dict[str, frozenset[str]] = {
    "2.0": frozenset(),
    "2.5": frozenset(("RandomResizedCrop", "RandomBrightnessContrast")),
}

#: Lowers one transform into a builder, whose image it is.
_Lower = Callable[[Builder, Any], None]


def lower_compose(builder: Builder, compose: Any) -> str:
    """Appends the steps of a Compose; returns the line of `explain`.

    Raises:
        LoweringError: one of its transforms has no native twin, or it does more than apply them to an image.
    """
    if builder.values is not None:
        builder.refuse(f"takes PIL images; put it before {builder.converter}")
    if builder.container or builder.channels != 3:
        builder.refuse("is native as a transform of whole samples of mode RGB")
    _check_compose(builder, compose)
    known = _LOWERS.keys() - _VERSIONS[_version()]
    begin = len(builder.steps)
    finished = False
    for transform in compose.transforms:
        name = type(transform).__name__
        if finished:
            builder.refuse(f"{name} comes after ToTensorV2, which must be the last transform")
        if name not in known or not is_of_albumentations(transform, name):
            builder.refuse(f"{repr_of(transform)} has no native twin")
        _check_plain(builder, transform)
        finished = name == "ToTensorV2"
        _LOWERS[name](builder, transform)
    if not finished:
        builder.refuse("does not end with ToTensorV2, so it makes an array")
    steps = [str(step) for step in builder.steps[begin:]]
    assert builder.values is not None
    return f"native {', '.join([*steps, f'a table of 256 values a channel, {builder.values.dtype}'])}"


def _version() -> str:
    return ".".join(sys.modules["albumentations"].__version__.split(".")[:2])


def _check_compose(builder: Builder, compose: Any) -> None:
    if not is_of_albumentations(compose, "Compose") or callable(vars(compose).get("__call__")):
        builder.refuse("is no Compose of albumentations' own class")
    _check_methods(builder, compose)
    if _version() not in _VERSIONS:
        builder.refuse(f"is of albumentations {_version()}; known are the rules of {' and '.join(_VERSIONS)}")
    if compose.p != 1:
        builder.refuse("is a Compose that is left out sometimes (p)")
    if compose.processors or compose.additional_targets:
        builder.refuse("is a Compose with boxes, keypoints or further targets")


#: Methods that decide what becomes of an image; others set an object up, or serve boxes and masks.
_METHODS = (
    *("__call__", "apply", "apply_with_params", "get_params", "get_params_dependent_on_data", "postprocess"),
    *("preprocess", "sample_parameters", "should_apply", "update_transform_params"),
)


@functools.cache
def _path_of(cls: type, name: str) -> tuple[str, str]:
    """Returns the module of a class's method, and its qualified name there."""
    of = next(one for one in cls.__mro__ if name in vars(one))
    return of.__module__, f"{of.__qualname__}.{name}"


def _check_methods(builder: Builder, value: Any) -> None:
    """Refuses an object whose class's methods a program has replaced."""
    cls: Any = type(value)
    for name in _METHODS:
        if isinstance(method := getattr(cls, name, None), FunctionType):
            module, path = _path_of(cls, name)
            if not is_own(method, sys.modules[module], path):
                builder.refuse(f"{cls.__name__}.{name} has been replaced by another function")


def _check_plain(builder: Builder, transform: Any) -> None:
    """Refuses a transform that does more than its class, or something else."""
    cls = type(transform)
    replaced = any(callable(getattr(cls, name, None)) for name in vars(transform))
    _check_methods(builder, transform)
    if replaced or transform.deterministic or transform.replay_mode:
        builder.refuse(f"{repr_of(transform)} has replaced methods, or is in a mode of replay")


def _size(builder: Builder, transform: Any, size: Any) -> tuple[int, int]:
    height, width = (operator.index(edge) for edge in size)
    if min(height, width) < 1:
        builder.refuse(f"{repr_of(transform)} has a size that is not positive")
    return height, width


def _check_resize(builder: Builder, transform: Any) -> None:
    if builder.values is not None:
        builder.refuse(f"{repr_of(transform)} resizes floats; put it before Normalize")
    if transform.interpolation != opencv_rule.LINEAR:
        builder.refuse(f"{repr_of(transform)} has another interpolation than cv2.INTER_LINEAR")
    if getattr(transform, "area_for_downscale", None) is not None:
        builder.refuse(f"{repr_of(transform)} resizes with cv2.INTER_AREA where it makes images smaller")
    if not isinstance(sys.modules["cv2"].resize, BuiltinFunctionType):
        builder.refuse("resizes with cv2.resize, which has been replaced by another function")
    if not opencv_rule.resizes_natively():
        builder.refuse("resizes with an OpenCV that rounds in another way than the native code")


def _add(builder: Builder, transform: Any, *steps: S.Step) -> None:
    """Appends steps that are done with the probability of the transform."""
    if transform.p < 1:
        builder.add(S.When(float(transform.p), steps, builder.draw(Column())))
    else:
        for step in steps:
            builder.add(step)


def _random_resized_crop(builder: Builder, transform: Any) -> None:
    _check_resize(builder, transform)
    height, width = _size(builder, transform, transform.size)
    narrow, wide = transform.ratio
    if round(wide) < 1 or round(1 / narrow) < 1:
        builder.refuse(f"{repr_of(transform)} may crop an empty box from a very thin image")
    share, aspect = area_and_ratio(builder, transform.scale, transform.ratio)
    draw = builder.draw(*[share, aspect] * 10, Column(), Column())
    scale, ratio = (share.low, share.high), (float(narrow), float(wide))
    _add(builder, transform, S.RandomResizedCrop(height, width, scale, ratio, S.OPENCV_FILTER, draw))


def _resize(builder: Builder, transform: Any) -> None:
    _check_resize(builder, transform)
    _add(builder, transform, S.Resize(*_size(builder, transform, (transform.height, transform.width)), S.OPENCV_FILTER))


def _shorter_edge(builder: Builder, transform: Any) -> None:
    _scale_edge(builder, transform, of_longer=False)


def _longer_edge(builder: Builder, transform: Any) -> None:
    _scale_edge(builder, transform, of_longer=True)


def _scale_edge(builder: Builder, transform: Any, *, of_longer: bool) -> None:
    _check_resize(builder, transform)
    if not isinstance(transform.max_size, int) or transform.max_size < 1:
        builder.refuse(f"{repr_of(transform)} has another size than one positive number, max_size")
    _add(builder, transform, S.ScaleEdge(transform.max_size, of_longer, S.OPENCV_FILTER))


def _brightness_contrast(builder: Builder, transform: Any) -> None:
    _check_position(builder, transform)
    if not transform.brightness_by_max or transform.ensure_safe_range:
        builder.refuse(f"{repr_of(transform)} depends on the values of the image")
    (darker, lighter), (less, more) = transform.brightness_limit, transform.contrast_limit
    factor, shift = Column(1.0 + less, 1.0 + more), Column(255.0 * darker, 255.0 * lighter)
    _add(builder, transform, S.ScaleShift(builder.draw(factor, shift)))


def _check_position(builder: Builder, transform: Any) -> None:
    if builder.values is not None:
        builder.refuse(f"{repr_of(transform)} comes after Normalize; put it before")


def _crop(builder: Builder, transform: Any, place: Column) -> None:
    _check_position(builder, transform)
    height, width = _size(builder, transform, (transform.height, transform.width))
    padding = (
        (_padding(builder, transform, (height, width), transform.pad_position),) if transform.pad_if_needed else ()
    )
    draw = builder.draw(place, place)
    crop = S.RandomCrop(height, width, (0, 0, 0, 0), False, (0, 0, 0), "constant", draw)
    _add(builder, transform, *padding, crop)


def _center_crop(builder: Builder, transform: Any) -> None:
    _crop(builder, transform, Column(_CENTRE, _CENTRE))


def _random_crop(builder: Builder, transform: Any) -> None:
    _crop(builder, transform, Column())


def _pad_if_needed(builder: Builder, transform: Any) -> None:
    _check_position(builder, transform)
    if transform.pad_height_divisor is not None or transform.pad_width_divisor is not None:
        builder.refuse(f"{repr_of(transform)} pads to multiples")
    size = _size(builder, transform, (transform.min_height, transform.min_width))
    _add(builder, transform, _padding(builder, transform, size, transform.position))


def _padding(builder: Builder, transform: Any, size: tuple[int, int], position: str) -> S.RandomPad:
    if position != "center" or transform.border_mode != 0:
        builder.refuse(f"{repr_of(transform)} pads in another way than with a constant around the centre")
    fill = transform.fill if isinstance(transform.fill, (tuple, list)) else [transform.fill] * 3
    if len(fill) != 3 or any(one != int(one) or not 0 <= one <= 255 for one in fill):
        builder.refuse(f"{repr_of(transform)} has a fill that is no byte for each channel")
    red, green, blue = (int(one) for one in fill)
    return S.RandomPad(*size, (red, green, blue), builder.draw(*[Column(_CENTRE, _CENTRE)] * 2))


def _flip_horizontal(builder: Builder, transform: Any) -> None:
    builder.add(S.HorizontalFlip(float(transform.p), builder.draw(Column())))


def _flip_vertical(builder: Builder, transform: Any) -> None:
    builder.add(S.VerticalFlip(float(transform.p), builder.draw(Column())))


def _normalize(builder: Builder, transform: Any) -> None:
    if transform.p < 1:
        builder.refuse(f"{repr_of(transform)} is left out sometimes, and then makes another dtype")
    if getattr(transform, "normalization", "standard") != "standard":
        builder.refuse(f"{repr_of(transform)} normalises by the values of the image")
    if builder.values is not None:
        builder.refuse(f"{repr_of(transform)} normalises for a second time")
    begin_tensor(builder)
    add_pointwise(builder, OnArray(copy.deepcopy(transform)))


def _to_tensor(builder: Builder, transform: Any) -> None:
    if transform.p < 1:
        builder.refuse(f"{repr_of(transform)} is left out sometimes")
    if builder.values is None:
        begin_tensor(builder)


class OnArray:
    """Applies a transform of albumentations that maps values one by one to the array of a tensor (C, H, W)."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        array = np.ascontiguousarray(image.permute(1, 2, 0).numpy())
        return torch.from_numpy(self.transform(image=array)["image"]).permute(2, 0, 1)


_LOWERS: dict[str, _Lower] = {
    "RandomResizedCrop": _random_resized_crop,
    "Resize": _resize,
    "SmallestMaxSize": _shorter_edge,
    "LongestMaxSize": _longer_edge,
    "RandomBrightnessContrast": _brightness_contrast,
    "CenterCrop": _center_crop,
    "RandomCrop": _random_crop,
    "PadIfNeeded": _pad_if_needed,
    "HorizontalFlip": _flip_horizontal,
    "VerticalFlip": _flip_vertical,
    "Normalize": _normalize,
    "ToTensorV2": _to_tensor,
}
