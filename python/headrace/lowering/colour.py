"""Lowers the transforms that change the colours of a PIL image."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import headrace.recipe.steps as S
from headrace.lowering.builder import Builder
from headrace.lowering.containers import add_shuffled
from headrace.lowering.images import Lower, on_images
from headrace.recipe.recipe import Column

_FACTORS: dict[str, Callable[[int], S.Step]] = {
    "brightness": S.Brightness,
    "contrast": S.Contrast,
    "saturation": S.Saturation,
    "hue": S.Hue,
}
# No effect on gray images: saturation blends an image with its own gray version, and torchvision skips hue.
_NOTHING_TO_GRAY = ("saturation", "hue")


def color_jitter(builder: Builder, transform: Any, library: str) -> str:
    branches: list[tuple[S.Step]] = []
    for name, kind in _FACTORS.items():
        bounds = getattr(transform, name)
        if bounds is None or (builder.channels == 1 and name in _NOTHING_TO_GRAY):
            continue
        low, high = (float(bound) for bound in bounds)
        if not math.isfinite(high):
            builder.refuse(f"{name} has an infinite largest factor; give a finite one")
        branches.append((kind(builder.draw(Column(low, high))),))
    return add_shuffled(builder, branches)


def random_grayscale(builder: Builder, transform: Any, library: str) -> str:
    if builder.channels == 1:
        return "nothing: images are gray already"
    return builder.add(S.When(float(transform.p), (S.Grayscale(3),), builder.draw(Column())))


def posterize(transform: Any) -> S.Step:
    bits = operator.index(transform.bits)
    if not 1 <= bits <= 8:  # Pillow 13 rejects 0; older versions made a black image
        raise ValueError("bits, the number of bits to keep, must be from 1 to 8")
    return S.Posterize(bits)


def _when(step: Callable[[Any], S.Step]) -> Lower:
    """Lowers to `step(transform)`, done with the transform's probability."""

    def lower(builder: Builder, transform: Any, library: str) -> str:
        return builder.add(S.When(float(transform.p), (step(transform),), builder.draw(Column())))

    return on_images(lower)


LOWERS: dict[str, Lower] = {
    "ColorJitter": on_images(color_jitter),
    "RandomGrayscale": on_images(random_grayscale),
    "RandomInvert": _when(lambda transform: S.Invert()),
    "RandomPosterize": _when(posterize),
    "RandomSolarize": _when(lambda transform: S.Solarize(float(transform.threshold))),
    "RandomAutocontrast": _when(lambda transform: S.Autocontrast()),
    "RandomEqualize": _when(lambda transform: S.Equalize()),
}
