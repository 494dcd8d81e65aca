"""Lowers the transforms that draw the size of their output."""

from __future__ import annotations

import math
import operator
from typing import Any

from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.families.geometry import add_one_of, image_filter
from headrace._lowering.pil_or_tensor import Lower, refuse_tensors
from headrace._recipe.arithmetic import functional_pil
from headrace._recipe.steps.draw_columns import Column
from headrace.transforms import ResizeToPatches

_MOST_EDGE = 2**31 - 1


def random_resize(builder: Builder, transform: Any, library: str) -> str:
    low, high = operator.index(transform.min_size), operator.index(transform.max_size)
    if not 1 <= low < high <= _MOST_EDGE:
        builder.refuse("max_size must exceed min_size, which must be positive")
    return builder.add(S.RandomResize(low, high, image_filter(builder, transform, library), builder.draw(Column())))


def random_shortest_size(builder: Builder, transform: Any, library: str) -> str:
    sizes = [operator.index(size) for size in transform.min_size]
    limit = None if transform.max_size is None else operator.index(transform.max_size)
    if not sizes or not 1 <= min(sizes) <= max(sizes) <= _MOST_EDGE or (limit is not None and limit < 1):
        builder.refuse("min_size and max_size must be positive numbers of pixels")
    filter = image_filter(builder, transform, library)
    return add_one_of(builder, [S.ScaleShorter(size, limit, filter) for size in sizes])


def scale_jitter(builder: Builder, transform: Any, library: str) -> str:
    width, height = (operator.index(size) for size in transform.target_size)
    low, high = (float(scale) for scale in transform.scale_range)
    if min(width, height) < 1 or not 0 < low <= high < math.inf:
        builder.refuse("target_size must be two positive numbers, and scale_range (smallest, largest), positive too")
    draw = builder.draw(Column(low, high))
    return builder.add(S.ScaleJitter(height, width, image_filter(builder, transform, library), draw))


def random_zoom_out(builder: Builder, transform: Any, library: str) -> str:
    low, high = (float(factor) for factor in transform.side_range)
    if not 1 <= low <= high < math.inf:
        builder.refuse(f"Invalid side range provided {transform.side_range}.")
    fill = transform._fill.get(Image.Image, transform._fill.get("others"))
    happens = builder.draw(Column())
    step = S.ZoomOut(
        functional_pil.fill_color(fill, builder.channels), builder.draw(Column(low, high), Column(), Column())
    )
    return builder.add(S.When(float(transform.p), (step,), happens))


def resize_to_patches(builder: Builder, transform: ResizeToPatches, library: str) -> str:
    numbers = [operator.index(one) for one in (transform.patch, transform.min_patches, transform.max_patches)]
    patch, least, most = numbers
    if not (patch >= 1 and 1 <= least <= most and patch * most <= _MOST_EDGE):
        builder.refuse("patch, min_patches and max_patches must be positive, and min_patches at most max_patches")
    return builder.add(S.FitPatches(patch, least, most, image_filter(builder, transform, library)))


LOWERS: dict[str, Lower] = {
    "ResizeToPatches": refuse_tensors(resize_to_patches),
    "RandomResize": refuse_tensors(random_resize),
    "RandomShortestSize": refuse_tensors(random_shortest_size),
    "ScaleJitter": refuse_tensors(scale_jitter),
    "RandomZoomOut": refuse_tensors(random_zoom_out),
}
