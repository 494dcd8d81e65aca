"""Lowers the transforms that change the colours of a PIL image, and of a byte tensor those in `tensors`."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageOps

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.byte_tensors import tensor_colour as of_tensors
from headrace._lowering.families.containers import add_shuffled
from headrace._lowering.pil_or_tensor import Lower, lower_either
from headrace._recipe.steps.draw_columns import Column

_FACTORS: dict[str, Callable[[int], S.Step]] = {
    "brightness": S.Brightness,
    "contrast": S.Contrast,
    "saturation": S.Saturation,
    "hue": S.Hue,
}
# No effect on gray images: saturation blends an image with its own gray version, and torchvision skips hue.
_NOTHING_TO_GRAY = ("saturation", "hue")
_MOST_OF_TENSORS = 1e6  # larger factors of a byte tensor overflow float32 in torch


def _factor_steps(builder: Builder, library: str) -> dict[str, Callable[[int], S.Step]]:
    return _FACTORS if builder.values is None else of_tensors.make_changes(builder, library)


def _draw_factor(builder: Builder, name: str, low: float, high: float) -> int:
    if not math.isfinite(high):
        builder.refuse(f"{name} has an infinite largest factor; give a finite one")
    if builder.values is not None and high > _MOST_OF_TENSORS:
        builder.refuse(f"{name} has factors above {_MOST_OF_TENSORS:.0f}, which overflow on a tensor")
    return builder.draw(Column(low, high))


def color_jitter(builder: Builder, transform: object, library: str) -> str:
    branches: list[tuple[S.Step]] = []
    for name, kind in _factor_steps(builder, library).items():
        bounds = getattr(transform, name)
        if bounds is None or (builder.channels == 1 and name in _NOTHING_TO_GRAY):
            continue
        low, high = (float(bound) for bound in bounds)
        branches.append((kind(_draw_factor(builder, name, low, high)),))
    return add_shuffled(builder, branches)


def random_grayscale(builder: Builder, transform: Any, library: str) -> str:
    if builder.channels == 1:
        return "nothing: images are gray already"
    return builder.add(S.When(float(transform.p), (S.Grayscale(3),), builder.draw(Column())))


def random_channel_permutation(builder: Builder, transform: object, library: str) -> str:
    if builder.channels == 1:
        return "nothing: images have one channel"
    return builder.add(_choose_channel_order(builder.draw(Column())))


def _choose_channel_order(draw: int) -> S.OneOf:
    """Returns the six orders of three channels, each as likely as the others."""
    orders = [(S.PermuteChannels((a, b, c)),) for a, b, c in itertools.permutations(range(3))]
    return S.OneOf(tuple(orders), tuple((i + 1) / 6 for i in range(6)), draw)


def random_photometric_distort(builder: Builder, transform: Any, library: str) -> str:
    """Lowers to one step for each change, done at times; contrast has two, of which at most one is done."""
    p = float(transform.p)
    done: dict[str, int] = {}
    factors: dict[str, S.Step] = {}
    for name, kind in _factor_steps(builder, library).items():
        low, high = (float(bound) for bound in getattr(transform, name))
        least, most = (-0.5, 0.5) if name == "hue" else (0.0, math.inf)
        if not least <= low <= high <= most or math.isinf(high):
            builder.refuse(f"{name} is not (smallest, largest) within [{least}, {most}] and finite")
        done[name] = builder.draw(Column())
        factors[name] = kind(_draw_factor(builder, name, low, high))
    early = builder.draw(Column())
    steps: list[S.Step] = [
        S.When(p, (factors["brightness"],), done["brightness"]),
        S.When(p, (S.When(0.5, (factors["contrast"],), early),), done["contrast"]),
    ]
    if builder.channels > 1:
        steps += [S.When(p, (factors[name],), done[name]) for name in _NOTHING_TO_GRAY]
    steps.append(S.When(p, (S.OneOf(((), (factors["contrast"],)), (0.5, 1.0), early),), done["contrast"]))
    if builder.channels > 1:
        steps.append(S.When(p, (_choose_channel_order(builder.draw(Column())),), builder.draw(Column())))
    return "native " + ", ".join(builder.add(step).removeprefix("native ") for step in steps)


def make_sharpness(transform: Any) -> S.Step:
    factor = float(transform.sharpness_factor)
    if not 0 <= factor < math.inf:
        raise ValueError("sharpness_factor must be a finite number, 0 or more")
    return S.Sharpness(S.Constant(factor))


def make_posterize(bits: int) -> S.Posterize:
    """Returns the step that keeps some bits. Raises ValueError if the installed Pillow cannot keep this number."""
    if not 0 <= bits <= 8:
        raise ValueError("bits, the number of bits to keep, must be from 0 to 8")
    ImageOps.posterize(Image.new("L", (1, 1)), bits)  # Pillow 13 raises if bits is 0; older versions make a black image
    return S.Posterize(bits)


def _make_random_lowering(step: Callable[[Any], S.Step]) -> Lower:
    """Lowers to `step(transform)`, done with the transform's probability."""

    def lower(builder: Builder, transform: Any, library: str) -> str:
        return builder.add(S.When(float(transform.p), (step(transform),), builder.draw(Column())))

    return lower


_OF_IMAGES: dict[str, Lower] = {
    "RandomGrayscale": random_grayscale,
    "RandomAdjustSharpness": _make_random_lowering(make_sharpness),
    "RandomInvert": _make_random_lowering(lambda transform: S.Invert()),
    "RandomPosterize": _make_random_lowering(lambda transform: make_posterize(operator.index(transform.bits))),
    "RandomSolarize": _make_random_lowering(lambda transform: S.Solarize(float(transform.threshold))),
    "RandomAutocontrast": _make_random_lowering(lambda transform: S.Autocontrast()),
    "RandomEqualize": _make_random_lowering(lambda transform: S.Equalize()),
}
LOWERS: dict[str, Lower] = {
    "ColorJitter": lower_either(color_jitter, color_jitter),
    "RandomChannelPermutation": lower_either(random_channel_permutation, random_channel_permutation),
    "RandomPhotometricDistort": lower_either(random_photometric_distort, random_photometric_distort),
    **{name: lower_either(lower, of_tensors.LOWERS.get(name, lower)) for name, lower in _OF_IMAGES.items()},
}
