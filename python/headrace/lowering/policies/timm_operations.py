"""One operation of timm's policies as native steps, for each sign and filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace.recipe.steps as S
from headrace.lowering.builder import Builder
from headrace.lowering.colour import posterized
from headrace.lowering.policies.operations import WARPS, Steps
from headrace.pixels import pillow_ops
from headrace.transforms import filter_name

_MOST = 10.0  # the magnitude of level 1
_SIGNS = (-1.0, 1.0)
_ENHANCERS: dict[str, Callable[[S.Constant], S.Step]] = {
    "Color": S.Saturation,
    "Contrast": S.Contrast,
    "Brightness": S.Brightness,
    "Sharpness": S.Sharpness,
}
_INCREASING = {f"{name}Increasing": step for name, step in _ENHANCERS.items()}
_POSTERIZES: dict[str, Callable[[int], int]] = {
    "Posterize": lambda bits: bits,
    "PosterizeIncreasing": lambda bits: 4 - bits,
    "PosterizeOriginal": lambda bits: bits + 4,
}
_PLAIN: dict[str, Steps] = {
    "AutoContrast": (S.Autocontrast(),),
    "Equalize": (S.Equalize(),),
    "Invert": (S.Invert(),),
}


def ways_of(builder: Builder, operation: Any) -> list[Steps]:
    """Returns what an AugmentOp can do once its probability has let it: equally probable ways.

    Args:
        builder: refuses an operation that has no native twin.
        operation: timm's object.
    """
    if operation.magnitude_std > 0:
        builder.refuse("draws its magnitudes anew for each image (mstd), which has no native twin; leave mstd out")
    name = operation.name
    level = max(0.0, min(operation.magnitude, operation.magnitude_max or _MOST)) / _MOST
    if name in _PLAIN:
        return [_PLAIN[name]]
    if name in _ENHANCERS:
        return [(_ENHANCERS[name](S.Constant(level * 1.8 + 0.1)),)]
    if name in _INCREASING:
        factors = [max(0.1, 1.0 + sign * (level * 0.9)) for sign in _SIGNS]
        return [(_INCREASING[name](S.Constant(factor)),) for factor in factors]
    if name in _POSTERIZES:
        bits = _POSTERIZES[name](int(level * 4))
        return [() if bits >= 8 else (posterized(bits),)]
    if name in ("Solarize", "SolarizeIncreasing"):
        threshold = min(256, int(level * 256))
        return [(S.Solarize(float(threshold if name == "Solarize" else 256 - threshold)),)]
    if name == "SolarizeAdd":
        return [(S.SolarizeAdd(min(128, int(level * 110))),)]
    if name == "Desaturate":
        return [(S.Saturation(S.Constant(1.0 - max(0.5, min(1.0, 0.5 + 0.5 * level)))),)]
    return _moves(builder, operation, level)


def _moves(builder: Builder, operation: Any, level: float) -> list[Steps]:
    """Returns the ways of an operation that moves pixels: each sign with each filter."""
    name, hparams = operation.name, operation.hparams
    fill = pillow_ops.fill_color(operation.kwargs["fillcolor"], builder.channels)
    given = operation.kwargs["resample"]
    filters = [filter_name(one) for one in (given if isinstance(given, (list, tuple)) else [given])]
    if not set(filters) <= set(WARPS):
        builder.refuse(f"moves pixels with the filters {filters}, of which Pillow supports {WARPS} only")
    if name == "Rotate":
        return [(S.Rotate(sign * (level * 30.0), filter, fill),) for sign in _SIGNS for filter in filters]
    if name in ("ShearX", "ShearY"):
        most = level * 0.3
    elif name in ("TranslateX", "TranslateY"):
        most = level * float(hparams["translate_const"])
    elif name in ("TranslateXRel", "TranslateYRel"):
        if builder.size is None:
            builder.refuse(
                f"{name} moves an image by a share of its size, and the size of the image is not known here; put it "
                "behind a step that makes one size"
            )
        most = level * hparams.get("translate_pct", 0.45) * builder.size["Y" not in name]
    else:
        builder.refuse(f"has an operation {name} that has no native twin")
    made: list[Steps] = []
    for moved in (sign * most for sign in _SIGNS):
        x, y = (moved, 0.0) if "X" in name else (0.0, moved)
        shear = name.startswith("Shear")
        matrix = (1.0, x, 0.0, y, 1.0, 0.0) if shear else (1.0, 0.0, x, 0.0, 1.0, y)
        made += [(S.Affine(matrix, filter, fill),) for filter in filters]
    return made
