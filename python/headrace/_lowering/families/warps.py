"""Lowers the transforms that rotate and warp a PIL image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.pil_or_tensor import Lower, refuse_tensors
from headrace._recipe.arithmetic import functional_pil, warps
from headrace._recipe.steps.draw_columns import Column, WarpNumber
from headrace.transforms import filter_name

_MOST = 3e38  # of float32, roughly: torch refuses to draw beyond


def random_rotation(builder: Builder, transform: Any, library: str) -> str:
    filter, fill = _filter_and_fill(builder, transform, library)
    draw = builder.draw(_checked_column(builder, transform.degrees))
    builder.draw(*_matrix_numbers("turn", draw, 3, draw + 1))
    return builder.add(S.RandomRotate(filter, fill, bool(transform.expand), _checked_center(builder, transform), draw))


def random_affine(builder: Builder, transform: Any, library: str) -> str:
    filter, fill = _filter_and_fill(builder, transform, library)
    translate, shear, version = transform.translate or (0, 0), transform.shear or (0, 0), 1 if library == "v1" else 2
    if min(transform.scale or (1,)) <= 0:
        builder.refuse("scale must be positive")
    shears = [*shear, 0, 0] if len(shear) == 2 else shear
    draw = builder.draw(
        _checked_column(builder, transform.degrees),
        *[_checked_column(builder, (-share, share)) for share in translate],
        _checked_column(builder, transform.scale or (1, 1)),
        *[_checked_column(builder, bounds) for bounds in (shears[:2], shears[2:])],
    )
    builder.draw(*_matrix_numbers("affine", draw, 4, draw + 6, version))
    return builder.add(S.RandomAffine(filter, fill, _checked_center(builder, transform), version, draw))


def random_perspective(builder: Builder, transform: Any, library: str) -> str:
    filter, fill = _filter_and_fill(builder, transform, library)
    if builder.size is None:
        builder.refuse(
            "solves equations that depend on the image's size, which varies here; put it after a step that makes one "
            "size, such as RandomResizedCrop(size)"
        )
    height, width = builder.size
    distortion = float(transform.distortion_scale)
    happens = builder.draw(Column())
    draw = builder.draw(*[Column()] * 8)
    moves = warps.perspective_moves(height, width, distortion)
    builder.draw(*_matrix_numbers("perspective", draw, 8, draw + 8, width, height, *moves))
    step = S.RandomPerspective(distortion, filter, fill, draw)
    return builder.add(S.When(float(transform.p), (step,), happens))


def _matrix_numbers(rule: str, drawn: int, count: int, first: int, *constants: float) -> list[WarpNumber]:
    return [WarpNumber(rule, drawn, first, count, constants)] * count


def _checked_column(builder: Builder, bounds: Sequence[float]) -> Column:
    low, high = (float(bound) for bound in bounds)
    if not -_MOST <= low <= high <= _MOST:
        builder.refuse("has bounds that torch does not draw between; give (smallest, largest), both finite")
    return Column(low, high)


def _checked_center(builder: Builder, transform: Any) -> tuple[float, float] | None:
    if transform.center is None:
        return None
    x, y = (float(one) for one in transform.center)
    if not math.isfinite(x + y):
        builder.refuse("center must be two finite numbers")
    return x, y


def _filter_and_fill(builder: Builder, transform: Any, library: str) -> tuple[str, tuple[int, int, int]]:
    filter = filter_name(transform.interpolation)
    if filter not in warps.WARP_FILTERS:
        builder.refuse(f"Pillow cannot warp with interpolation {filter}; use nearest, bilinear or bicubic")
    fill = transform.fill if library == "v1" else transform._fill.get(Image.Image, transform._fill.get("others"))
    return filter, functional_pil.fill_color(fill, builder.channels)


LOWERS: dict[str, Lower] = {
    "RandomRotation": refuse_tensors(random_rotation),
    "RandomAffine": refuse_tensors(random_affine),
    "RandomPerspective": refuse_tensors(random_perspective),
}
