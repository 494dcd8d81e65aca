"""Changes of an image's values that a deferred image records: natively, and by Pillow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageEnhance, ImageOps

from headrace.pixels import pillow_ops, tensor_ops

NativeEffect = tuple[str, Any, Any]  # name, factor, amount; of a blur its name and two lists of weights

_MOST_FACTOR = 1e6  # the kernels' limit, plan.h


@dataclass(frozen=True)
class Effect:
    """A change of an RGB or gray image.

    Attributes:
        keeps_info: whether Pillow's result has the image's ``info``; otherwise it is empty.
        by_pillow: called with an image that has its pixels, and the recorded value.
        native: called with the recorded value; returns None where the kernels do not make Pillow's bytes.
    """

    keeps_info: bool
    by_pillow: Callable[[Any, Any], Any]
    native: Callable[[Any], NativeEffect | None]


@dataclass(frozen=True)
class Blur:
    """The arguments of `tensor_ops.gaussian_blur`."""

    width: int
    height: int
    sigma: float
    softmax: bool


def _factor(name: str) -> Callable[[Any], NativeEffect | None]:
    return lambda value: (name, value, 0) if abs(value) <= _MOST_FACTOR else None


def _hue(value: float) -> NativeEffect:
    return "hue", 0.0, int(value * 255) & 255


def _posterize(bits: int) -> NativeEffect:
    return "posterize", 0.0, 256 - (1 << 8 - bits)


def _solarize(threshold: float) -> NativeEffect:
    return "solarize", 0.0, min(max(math.ceil(threshold), 0), 256)


def _blur(value: Blur) -> NativeEffect:
    row, column = (tensor_ops.gaussian_kernel(size, value.sigma, value.softmax) for size in (value.width, value.height))
    return "blur", row.tolist(), column.tolist()


_blur_by_torch = tensor_ops.gaussian_blur  # the function that deferred images replace

EFFECTS = {
    "brightness": Effect(False, lambda image, by: ImageEnhance.Brightness(image).enhance(by), _factor("brightness")),
    "contrast": Effect(False, lambda image, by: ImageEnhance.Contrast(image).enhance(by), _factor("contrast")),
    "saturation": Effect(True, lambda image, by: ImageEnhance.Color(image).enhance(by), _factor("saturation")),
    "hue": Effect(False, pillow_ops.adjust_hue, _hue),
    "posterize": Effect(True, ImageOps.posterize, _posterize),
    "solarize": Effect(True, ImageOps.solarize, _solarize),
    "invert": Effect(True, lambda image, _: ImageOps.invert(image), lambda _: ("invert", 0.0, 0)),
    "autocontrast": Effect(True, lambda image, _: ImageOps.autocontrast(image), lambda _: ("autocontrast", 0.0, 0)),
    "equalize": Effect(True, lambda image, _: ImageOps.equalize(image), lambda _: ("equalize", 0.0, 0)),
    "blur": Effect(
        False,
        lambda image, by: _blur_by_torch(image, by.width, by.height, by.sigma, softmax=by.softmax),
        _blur,
    ),
}


def applied(core: Any, name: str, value: Any) -> Any:
    """Returns Pillow's native image after a change by Pillow."""
    return EFFECTS[name].by_pillow(Image.Image()._new(core), value).im
