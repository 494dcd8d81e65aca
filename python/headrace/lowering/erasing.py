"""Lowers RandomErasing of a tensor with fixed values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import headrace.recipe.steps as S
from headrace.lowering.builder import Builder
from headrace.lowering.geometry import area_and_ratio
from headrace.lowering.images import Lower
from headrace.recipe.recipe import Column


def random_erasing(builder: Builder, transform: Any, library: str) -> str:
    if transform.value is None or isinstance(transform.value, str):
        builder.refuse('value="random" draws a number for every element, which has no native twin; give it a number')
    given = transform.value if isinstance(transform.value, Sequence) else [transform.value]
    return add_erasing(builder, transform.p, area_and_ratio(builder, transform.scale, transform.ratio), given)


def add_erasing(builder: Builder, p: float, columns: tuple[Column, Column], given: Sequence[float]) -> str:
    """Appends an Erase and returns its line of `explain`.

    Args:
        p: probability of erasing.
        columns: columns of the fraction of the area and of height / width.
        given: the value to write: one number, or one per channel.
    """
    if builder.values is None:
        builder.refuse(
            "works on a PIL image here, where v1 raises and v2 has no native twin; put it after ToTensor() or ToImage()"
        )
    if len(given) not in (1, builder.channels):
        builder.refuse(
            f"If value is a sequence, it should have either a single value or {builder.channels} (number of input "
            "channels)"
        )
    value = tuple(float(number) for number in given) * (builder.channels // len(given))
    dtype = builder.values.dtype
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        # A cast from beyond the limits depends on the machine.
        if not all(limits.min - 1 < number < limits.max + 1 for number in value):
            builder.refuse(f"value does not fit {dtype}, the tensor's dtype; change it, or put the step after ToDtype")
    draw = builder.draw(Column(), *columns * 10, Column(), Column())
    return builder.erase(S.Erase(float(p), value, len(builder.pointwise), draw))


LOWERS: dict[str, Lower] = {"RandomErasing": random_erasing}
