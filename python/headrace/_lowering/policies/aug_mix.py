"""Lowers torchvision's AugMix, of a PIL image or of a byte tensor."""

from __future__ import annotations

from typing import Any

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.pil_or_tensor import Lower, lower_either
from headrace._lowering.policies.operations import Steps, choose_any_branch, choose_any_way
from headrace._lowering.policies.tensor_operations import TensorOperations
from headrace._recipe.steps.draw_columns import Column, SumWeights

_BINS = 10  # of the magnitudes, of which the first `severity` can be drawn
_ANY_DEPTH = 3  # of the chains, if their depth is drawn
_MOST_MIXED = 64  # operations: each has two columns
_LEAST_ALPHA = 0.2  # gamma variates of smaller ones can be smaller than any float32, which torch replaces


def aug_mix(builder: Builder, transform: Any, library: str) -> str:
    width, depth, alpha = transform.mixture_width, transform.chain_depth, transform.alpha
    if not isinstance(alpha, float) or not _LEAST_ALPHA <= alpha < float("inf"):
        builder.refuse(f"alpha is no finite float of at least {_LEAST_ALPHA}")
    count = width * (depth if depth > 0 else _ANY_DEPTH)
    if not 1 <= count <= _MOST_MIXED:
        builder.refuse(f"mixes {count} operations; natively between 1 and {_MOST_MIXED} of them")
    operations = TensorOperations(builder, transform, library, _BINS, int(transform.severity))
    every = [operations.lower(name, None) for name in operations.names]
    chains = tuple(_make_chain(builder, every, depth) for _ in range(width))
    drawn = builder.draw(Column())
    first = builder.draw(*[SumWeights(drawn, drawn + 1, width, alpha)] * (width + 1))
    builder.add(S.SumChains(chains, first))
    deep = depth if depth > 0 else f"1 to {_ANY_DEPTH}"
    return f"native sum of {width} chains of {deep} of {len(every)} operations ({', '.join(operations.names)})"


def _make_chain(builder: Builder, every: list[list[Steps]], depth: int) -> Steps:
    """Returns `depth` operations, or one to three with equal probability."""
    if depth > 0:
        return tuple(_make_operation(builder, every) for _ in range(depth))
    drawn = builder.draw(Column())
    steps: Steps = ()
    for number in range(_ANY_DEPTH):  # the last operation first: it is done with probability 1/3
        steps = (S.When((number + 1) / _ANY_DEPTH, (_make_operation(builder, every), *steps), drawn),)
    return steps


def _make_operation(builder: Builder, every: list[list[Steps]]) -> S.Step:
    chosen, way = builder.draw(Column()), builder.draw(Column())
    return choose_any_branch([choose_any_way(one, way) for one in every], chosen)


LOWERS: dict[str, Lower] = {"AugMix": lower_either(aug_mix, aug_mix)}
