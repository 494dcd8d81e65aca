"""One operation of timm's policies as native steps, for each sign and filter."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image, ImageOps

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.families.colour import make_posterize
from headrace._lowering.policies.operations import WARPS, Steps
from headrace._lowering.policies.timm_arguments import Arguments, Operation
from headrace._recipe.arithmetic import functional_pil
from headrace.transforms import filter_name

#: A constant argument, or the column of a drawn one.
Argument = S.Constant | int

_ENHANCERS: dict[str, Callable[[Argument], S.Step]] = {
    "Color": S.Saturation,
    "Contrast": S.Contrast,
    "Brightness": S.Brightness,
    "Sharpness": S.Sharpness,
}
_PLAIN: dict[str, Steps] = {
    "AutoContrast": (S.Autocontrast(),),
    "Equalize": (S.Equalize(),),
    "Invert": (S.Invert(),),
}


def _posterize(bits: Argument) -> Steps:
    if isinstance(bits, int):
        return (S.Posterize(S.Drawn(bits)),)
    return () if bits.value >= 8 else (make_posterize(max(0, int(bits.value))),)


def _solarize(threshold: Argument) -> Steps:
    return (S.Solarize(S.Drawn(threshold) if isinstance(threshold, int) else threshold.value),)


def _solarize_add(add: Argument) -> Steps:
    return (S.SolarizeAdd(S.Drawn(add) if isinstance(add, int) else int(add.value)),)


def _as_single_step(step: Callable[[Argument], S.Step]) -> Callable[[Argument], Steps]:
    return lambda argument: (step(argument),)


def _make_blur(radius: Argument) -> Steps:
    return (S.PillowBlur(S.Drawn(radius) if isinstance(radius, int) else radius.value),)


def _pillows_fewest_bits() -> float:
    """Returns the fewest bits that the installed Pillow posterizes to."""
    try:
        ImageOps.posterize(Image.new("L", (1, 1)), 0)
    except ValueError:  # from Pillow 13 on
        return 1.0
    return 0.0


# Name of an operation -> the rule of its argument, the rule's constants, and its steps.
_VALUES: dict[str, tuple[str, tuple[float, ...], Callable[[Argument], Steps]]] = {
    **{name: ("factor", (), _as_single_step(step)) for name, step in _ENHANCERS.items()},
    **{f"{name}Increasing": ("factor_either_way", (), _as_single_step(step)) for name, step in _ENHANCERS.items()},
    "Posterize": ("bits", (0.0, 1.0), _posterize),
    "PosterizeIncreasing": ("bits", (4.0, -1.0), _posterize),
    "PosterizeOriginal": ("bits", (4.0, 1.0), _posterize),
    "Solarize": ("threshold", (0.0, 1.0), _solarize),
    "SolarizeIncreasing": ("threshold", (256.0, -1.0), _solarize),
    "SolarizeAdd": ("addend", (), _solarize_add),
    "Desaturate": ("saturation", (), _as_single_step(S.Saturation)),
    "GaussianBlur": ("radius", (), _make_blur),
    "GaussianBlurRand": ("any_radius", (), _make_blur),
}


def ways_of_operation(builder: Builder, operation: Operation, arguments: Arguments) -> list[Steps]:
    """Returns what an AugmentOp can do once its probability has let it: equally probable ways.

    Args:
        builder: refuses an operation that has no native twin.
        operation: timm's object.
        arguments: those of the operations of which this is one.
    """
    if operation.name in _PLAIN:
        return [_PLAIN[operation.name]]
    if operation.name not in _VALUES:
        return _ways_of_move(builder, operation, arguments)
    rule, constants, made = _VALUES[operation.name]
    given = arguments.make_argument(operation, rule, *constants, *([_pillows_fewest_bits()] if rule == "bits" else []))
    every: list[Argument] = [*given] if isinstance(given, list) else [given]
    return [made(one) for one in every]


def _ways_of_move(builder: Builder, operation: Operation, arguments: Arguments) -> list[Steps]:
    """Returns the ways of an operation that moves pixels: each sign with each filter."""
    name = operation.name
    if name == "Rotate":
        most: tuple[float, ...] = (30.0,)
    elif name in ("ShearX", "ShearY"):
        most = (0.3,)
    elif name in ("TranslateX", "TranslateY"):
        most = (float(operation.hparams["translate_const"]),)
    elif name in ("TranslateXRel", "TranslateYRel"):
        if builder.size is None:
            builder.refuse(
                f"{name} moves an image by a share of its size, and the size of the image is not known here; put it "
                "after a step that makes one size"
            )
        most = (float(operation.hparams.get("translate_pct", 0.45)), float(builder.size["Y" not in name]))
    else:
        builder.refuse(f"has an operation {name} that has no native twin")
    fill = functional_pil.fill_color(operation.kwargs["fillcolor"], builder.channels)
    filters = _filters_of_operation(builder, operation)
    given = arguments.make_argument(operation, "angle" if name == "Rotate" else "move", *most)
    if isinstance(given, list):
        return [(_make_move(name, one.value, filter, fill),) for one in given for filter in filters]
    if name == "Rotate":
        ways: list[Steps] = [(S.RandomRotate(filter, fill, False, None, given),) for filter in filters]
    else:
        ways = [(_make_move(name, S.Drawn(given), filter, fill),) for filter in filters]
    return ways if len(ways) == 1 else ways * 2  # the sign is drawn by the same column's halves


def _filters_of_operation(builder: Builder, operation: Operation) -> list[str]:
    given = operation.kwargs["resample"]
    filters = [filter_name(one) for one in (given if isinstance(given, (list, tuple)) else [given])]
    if not set(filters) <= set(WARPS):
        builder.refuse(f"moves pixels with the filters {filters}, of which Pillow supports {WARPS} only")
    return filters


def _make_move(name: str, moved: float | S.Drawn, filter: str, fill: tuple[int, int, int]) -> S.Step:
    if name == "Rotate":
        assert not isinstance(moved, S.Drawn)
        return S.Rotate(moved, filter, fill)
    x, y = (moved, 0.0) if "X" in name else (0.0, moved)
    shear = name.startswith("Shear")
    return S.Affine((1.0, x, 0.0, y, 1.0, 0.0) if shear else (1.0, 0.0, x, 0.0, 1.0, y), filter, fill)
