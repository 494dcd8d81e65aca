"""Lowers torchvision's transforms that change the colours of a byte tensor with torch's arithmetic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.pil_or_tensor import Lower
from headrace._recipe.arithmetic import tensor_rule
from headrace._recipe.steps.byte_tensor_steps import Rounding
from headrace._recipe.steps.draw_columns import Column
from headrace._recipe.steps.effect_steps import Drawn

#: Up to here torch's float32 sum of the bytes is exact: 2^24 / 255.
_MOST_SUMMED = 65793

#: Step of a builder, a transform, and torchvision's version.
Make = Callable[[Builder, Any, int], S.Step]


def _make_random_lowering(make: Make) -> Lower:
    """Lowers to `make(builder, transform, version)`, done with the transform's probability."""

    def lower(builder: Builder, transform: Any, library: str) -> str:
        step = make(builder, transform, 1 if library == "v1" else 2)
        return builder.add(S.When(float(transform.p), (step,), builder.draw(Column())))

    return lower


def _find_rounding(builder: Builder) -> Rounding:
    if builder.size is None:
        builder.refuse(
            "works on a tensor here, and the size of the image is not known; put it after RandomResizedCrop, "
            "Resize((height, width)) or CenterCrop"
        )
    found = tensor_rule.find_rounding(*builder.size)
    if found is None:
        builder.refuse("works on a tensor here, and torch's arithmetic on this processor has no native twin")
    return found


def _lower_gray(builder: Builder, transform: Any, library: str) -> str:
    if builder.channels == 1:
        return "nothing: images are gray already"
    version = 1 if library == "v1" else 2
    # A blend of all of the gray image with nothing of the coloured one.
    step = S.TensorSaturation(version, _find_rounding(builder), 0.0)
    return builder.add(S.When(float(transform.p), (step,), builder.draw(Column())))


def _make_sharpness(builder: Builder, transform: Any, version: int) -> S.Step:
    factor = float(transform.sharpness_factor)
    if not 0 <= factor < math.inf:
        builder.refuse("sharpness_factor must be a finite number, 0 or more")
    return S.TensorSharpness(version, _find_rounding(builder), factor)


def make_contrast(builder: Builder, version: int, rounding: Rounding, factor: float | Drawn) -> S.Step:
    """Returns the step of Contrast; refuses where torch rounds in another way than the native code."""
    assert builder.size is not None
    (height, width), channels = builder.size, builder.channels
    if height * width > _MOST_SUMMED:
        builder.refuse(
            f"sums up {height * width} pixels for Contrast in float32; natively up to {_MOST_SUMMED}, which torch "
            "sums up without rounding"
        )
    if version == 2 and not tensor_rule.is_rounding_uniform(channels * height * width):
        builder.refuse(
            f"blends {channels} x {height} x {width} values for Contrast, and torch rounds the last ones otherwise "
            "on this processor; natively where their number is a multiple of 16, and of 16 for each thread of torch"
        )
    return S.TensorContrast(version, rounding, factor, channels)


def make_changes(builder: Builder, library: str) -> dict[str, Callable[[int], S.Step]]:
    """Returns the step of each change of ColorJitter, as a function of the column of its factor."""
    version, rounding = 1 if library == "v1" else 2, _find_rounding(builder)
    return {
        "brightness": S.Brightness,  # torch's product, cut to a byte, is Pillow's blend with black
        "contrast": lambda column: make_contrast(builder, version, rounding, Drawn(column)),
        "saturation": lambda column: S.TensorSaturation(version, rounding, Drawn(column)),
        "hue": lambda column: S.TensorHue(version, rounding, Drawn(column)),
    }


def make_posterize(bits: int) -> S.Step:
    """Returns the step that keeps some bits of a tensor; 0 bits, which Pillow 13 refuses, are black."""
    if not 0 <= bits <= 8:
        raise ValueError("bits, the number of bits to keep, must be from 0 to 8")
    return S.Posterize(bits) if bits else S.Brightness(S.Constant(0.0))


def _make_solarize(builder: Builder, transform: Any, version: int) -> S.Step:
    threshold = float(transform.threshold)
    if not 0 <= threshold <= 255:
        builder.refuse("threshold must be from 0 to 255 for a tensor")
    return S.Solarize(torch.tensor(threshold, dtype=torch.float32, device="cpu").item())  # torch compares in float32


LOWERS: dict[str, Lower] = {
    "RandomGrayscale": _lower_gray,
    "RandomAdjustSharpness": _make_random_lowering(_make_sharpness),
    "RandomPosterize": _make_random_lowering(
        lambda builder, transform, version: make_posterize(operator.index(transform.bits))
    ),
    "RandomSolarize": _make_random_lowering(_make_solarize),
    "RandomAutocontrast": _make_random_lowering(
        lambda builder, _, version: S.TensorAutocontrast(version, _find_rounding(builder))
    ),
}
