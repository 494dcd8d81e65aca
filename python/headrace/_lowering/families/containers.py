"""Lowers the transforms that choose among other transforms or shuffle their order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.pil_or_tensor import Lower
from headrace._recipe.steps.draw_columns import Column

_MOST_BRANCHES = 18  # 18! < 2^53: one draw of 53 bits can encode every order


def random_apply(builder: Builder, transform: Any, library: str) -> str:
    way = builder.lower_branch(transform.transforms)
    _common_channels(builder, [way.channels, builder.channels])
    if not way.steps:
        return "nothing"
    return builder.add(S.When(float(transform.p), tuple(way.steps), builder.draw(Column())))


def random_choice(builder: Builder, transform: Any, library: str) -> str:
    ways = [builder.lower_branch([one]) for one in transform.transforms]
    if not ways:
        builder.refuse("has no transforms to choose from; give it some")
    bounds = _cumulative_weights(
        [1.0] * len(ways) if transform.p is None else [float(p) for p in transform.p], len(ways)
    )
    builder.channels = _common_channels(builder, [way.channels for way in ways])
    if not any(way.steps for way in ways):
        return "nothing"
    return builder.add(S.OneOf(tuple(tuple(way.steps) for way in ways), bounds, builder.draw(Column())))


def random_order(builder: Builder, transform: Any, library: str) -> str:
    ways = [builder.lower_branch([one]) for one in transform.transforms]
    if any(way.channels != builder.channels for way in ways):
        builder.refuse(
            "holds a transform that changes the number of channels, on which the others depend; use "
            "Grayscale(num_output_channels=3)"
        )
    return add_shuffled(builder, [tuple(way.steps) for way in ways])


def add_shuffled(builder: Builder, branches: Iterable[tuple[S.Step, ...]]) -> str:
    """Appends all branches, in a random order; returns the line of `explain`."""
    branches = [branch for branch in branches if branch]  # an empty branch does not affect the order of the others
    if len(branches) > _MOST_BRANCHES:
        builder.refuse(f"shuffles more than {_MOST_BRANCHES} transforms, too many for one draw; nest RandomOrder")
    if not branches:
        return "nothing"
    if len(branches) == 1:
        return ", ".join(builder.add(step) for step in branches[0])
    return builder.add(S.Shuffled(tuple(branches), builder.draw(Column())))


def _cumulative_weights(weights: Sequence[float], count: int) -> tuple[float, ...]:
    """Returns the cumulative shares of the weights: exactly 1 from the last weight on that is not 0."""
    if len(weights) != count:
        raise ValueError(f"Length of p doesn't match the number of transforms: {len(weights)} != {count}")
    sums = list(itertools.accumulate(weights))
    if not min(weights) >= 0 or not 0 < sums[-1] < math.inf:
        raise ValueError("p must hold finite weights, none of them negative and at least one positive")
    return tuple(1.0 if reached == sums[-1] else reached / sums[-1] for reached in sums)


def _common_channels(builder: Builder, channels: Sequence[int]) -> int:
    if len(set(channels)) != 1:
        builder.refuse(
            "makes images of one channel in some branches and of three in others; use Grayscale(num_output_channels=3)"
        )
    return channels[0]


def _refuse_any_tensor(lower: Lower) -> Lower:
    def lower_image(builder: Builder, transform: object, library: str) -> str:
        if builder.values is not None:
            builder.refuse(f"has a native twin on PIL images only; put it before {builder.converter}")
        return lower(builder, transform, library)

    return lower_image


LOWERS: dict[str, Lower] = {
    "RandomApply": _refuse_any_tensor(random_apply),
    "RandomChoice": _refuse_any_tensor(random_choice),
    "RandomOrder": _refuse_any_tensor(random_order),
}
