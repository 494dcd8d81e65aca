"""Changes of an image's values that a deferred image records: natively, and by Pillow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar

from PIL import Image, ImageEnhance, ImageOps

from headrace._recipe.arithmetic import functional_pil, torch_resize_blur
from headrace.pillow.recording.lazy_core import MOST_PIXELS

#: Name of a step and its parameter; of a blur its name and two lists of weights; of a warp what bind/plan.cpp reads.
NativeEffect = tuple[object, ...]

T = TypeVar("T")

_WARP_FILTERS = (Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)
_NUMBERS: dict[int, int] = {Image.Transform.AFFINE: 6, Image.Transform.PERSPECTIVE: 8}
_MOST_FACTOR = 1e6  # the kernels' limit, effect.h


@dataclass(frozen=True)
class Effect:
    """A change of an RGB or gray image.

    Attributes:
        keeps_info: whether Pillow's result has the image's ``info``; otherwise it is empty.
        by_pillow: called with an image that has its pixels, and the recorded value.
        native: called with the recorded value; returns None where the kernels do not make Pillow's bytes.
    """

    keeps_info: bool
    by_pillow: Callable[[Image.Image, Any], Image.Image]
    native: Callable[[Any], NativeEffect | None]


@dataclass(frozen=True)
class Blur:
    """The arguments of `torch_resize_blur.gaussian_blur`."""

    width: int
    height: int
    sigma: float
    softmax: bool


@dataclass(frozen=True)
class Warp:
    """The arguments of Pillow's `transform`.

    Attributes:
        size: (width, height) of the image that it makes.
        method: AFFINE, with six numbers, or PERSPECTIVE, with eight.
        filter: nearest, bilinear or bicubic.
        fill: a pixel of the image's mode.
    """

    size: tuple[int, int]
    method: int
    numbers: tuple[float, ...]
    filter: int
    fill: int | tuple[int, ...]


def warp_of(mode: str, size: object, method: object, data: object, filter: Any, fill: object) -> Warp | None:
    """Returns the warp that arguments of Pillow's `transform` stand for; None for all that it may refuse or does not
    do to pixels alone."""
    if not isinstance(method, int) or method not in _NUMBERS or not isinstance(data, (list, tuple)):
        return None
    data = data[: _NUMBERS[method]]
    if mode not in ("RGB", "L") or filter not in _WARP_FILTERS or not _are_values_of_type(size, int, 2):
        return None
    if not _are_values_of_type(data, (int, float), _NUMBERS[method]):
        return None
    if fill is None:
        fill = 0 if mode == "L" else (0, 0, 0)
    bytes_ = fill if mode == "RGB" else (fill,)
    if not _are_values_of_type(bytes_, int, len(mode)) or not all(0 <= byte <= 255 for byte in bytes_):
        return None
    numbers = tuple(float(one) for one in data)
    if min(size) < 1 or size[0] * size[1] > MOST_PIXELS or not all(map(math.isfinite, numbers)):
        return None
    return Warp((size[0], size[1]), int(method), numbers, int(filter), bytes_[0] if mode == "L" else tuple(bytes_))


def _are_values_of_type(values: object, kind: type[T] | tuple[type[T], ...], count: int) -> TypeGuard[Sequence[T]]:
    """Whether these are `count` values of a type."""
    if not isinstance(values, (list, tuple)) or len(values) != count:
        return False
    return all(isinstance(one, kind) and not isinstance(one, bool) for one in values)


def _record_factor(name: str) -> Callable[[float], NativeEffect | None]:
    return lambda value: (name, value) if abs(value) <= _MOST_FACTOR else None


def _record_parameter(name: str) -> Callable[[float], NativeEffect]:
    return lambda value: (name, value or 0)


def _record_blur(value: Blur) -> NativeEffect:
    row, column = (
        torch_resize_blur.gaussian_kernel(size, value.sigma, value.softmax) for size in (value.width, value.height)
    )
    return "Blur", row.tolist(), column.tolist()


def _warp(value: Warp) -> NativeEffect:
    padded = (*value.numbers, *[0.0] * (8 - len(value.numbers)))
    fill = value.fill if isinstance(value.fill, tuple) else (value.fill,) * 3
    return "Warp", (value.method == Image.Transform.PERSPECTIVE, value.filter, padded, fill, value.size)


def _warp_by_pillow(image: Image.Image, by: Warp) -> Image.Image:
    return image.transform(by.size, Image.Transform(by.method), by.numbers, by.filter, fillcolor=by.fill)


_blur_by_torch = torch_resize_blur.gaussian_blur  # the function that deferred images replace

EFFECTS = {
    "brightness": Effect(
        False, lambda image, by: ImageEnhance.Brightness(image).enhance(by), _record_factor("Brightness")
    ),
    "contrast": Effect(False, lambda image, by: ImageEnhance.Contrast(image).enhance(by), _record_factor("Contrast")),
    "saturation": Effect(True, lambda image, by: ImageEnhance.Color(image).enhance(by), _record_factor("Saturation")),
    "sharpness": Effect(True, lambda image, by: ImageEnhance.Sharpness(image).enhance(by), _record_factor("Sharpness")),
    "hue": Effect(False, functional_pil.adjust_hue, _record_parameter("Hue")),
    "posterize": Effect(True, ImageOps.posterize, _record_parameter("Posterize")),
    "solarize": Effect(True, ImageOps.solarize, _record_parameter("Solarize")),
    "invert": Effect(True, lambda image, _: ImageOps.invert(image), _record_parameter("Invert")),
    "autocontrast": Effect(True, lambda image, _: ImageOps.autocontrast(image), _record_parameter("Autocontrast")),
    "equalize": Effect(True, lambda image, _: ImageOps.equalize(image), _record_parameter("Equalize")),
    "blur": Effect(
        False,
        lambda image, by: _blur_by_torch(image, by.width, by.height, by.sigma, softmax=by.softmax),
        _record_blur,
    ),
    "warp": Effect(True, _warp_by_pillow, _warp),
}


def apply_effect(core: Any, name: str, value: object) -> object:
    """Returns Pillow's native image after a change by Pillow."""
    return EFFECTS[name].by_pillow(Image.Image()._new(core), value).im
