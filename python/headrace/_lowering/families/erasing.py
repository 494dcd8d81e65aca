"""Lowers RandomErasing of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.families.geometry import area_and_ratio
from headrace._lowering.pil_or_tensor import Lower
from headrace._recipe.steps.draw_columns import Column


def random_erasing(builder: Builder, transform: Any, library: str) -> str:
    columns = area_and_ratio(builder, transform.scale, transform.ratio)
    if transform.value is None or isinstance(transform.value, str):
        return add_noise(builder, transform.p, columns, "element")
    given = transform.value if isinstance(transform.value, Sequence) else [transform.value]
    return add_erasing(builder, transform.p, columns, given)


def add_erasing(
    builder: Builder,
    p: float,
    columns: tuple[Column, Column],
    given: Sequence[float],
    counts: tuple[int, int] = (1, 1),
) -> str:
    """Appends an EraseStep that writes constants, and returns its line of `explain`.

    Args:
        p: probability of erasing.
        columns: columns of the fraction of the area and of height / width.
        given: the value to write: one number, or one per channel.
        counts: fewest and most boxes.
    """
    dtype = _dtype(builder)
    if len(given) not in (1, builder.channels):
        builder.refuse(
            f"If value is a sequence, it should have either a single value or {builder.channels} (number of input "
            "channels)"
        )
    value = tuple(float(number) for number in given) * (builder.channels // len(given))
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        # A cast from beyond the limits depends on the machine.
        if not all(limits.min - 1 < number < limits.max + 1 for number in value):
            builder.refuse(f"value does not fit {dtype}, the tensor's dtype; change it, or put the step after ToDtype")
    if counts != (1, 1):
        return _add_boxes(builder, p, columns, counts, "", value)
    draw = builder.draw(Column(), *columns * 10, Column(), Column())
    return builder.erase(S.Erase(float(p), value, len(builder.pointwise), draw))


def add_noise(
    builder: Builder, p: float, columns: tuple[Column, Column], noise: str, counts: tuple[int, int] = (1, 1)
) -> str:
    """Appends an EraseStep that draws its values, and returns its line of `explain`.

    Args:
        noise: "channel" or "element": what has a value of its own.
        p, columns, counts: as in `add_erasing`.
    """
    dtype = _dtype(builder)
    if not dtype.is_floating_point:
        builder.refuse(
            f"writes normally distributed numbers into a tensor of {dtype}, which does not hold negative ones; put it "
            "after ToDtype(torch.float32, scale=True)"
        )
    return _add_boxes(builder, p, columns, counts, noise, ())


def _dtype(builder: Builder) -> torch.dtype:
    """Returns the dtype of the tensor at this point; refuses a PIL image."""
    if builder.values is None:
        builder.refuse(
            "works on a PIL image here, where v1 raises and v2 has no native twin; put it after ToTensor() or ToImage()"
        )
    return builder.values.dtype


def _add_boxes(
    builder: Builder,
    p: float,
    columns: tuple[Column, Column],
    counts: tuple[int, int],
    noise: str,
    value: tuple[float, ...],
) -> str:
    fewest, most = counts
    drawn = {"": 0, "channel": builder.channels, "element": 1}[noise]
    draw = builder.draw(Column(), Column(), *[*columns * 10, *[Column()] * (2 + drawn)] * most)
    return builder.erase(S.EraseBoxes(float(p), fewest, most, noise, drawn, value, len(builder.pointwise), draw))


LOWERS: dict[str, Lower] = {"RandomErasing": random_erasing}
