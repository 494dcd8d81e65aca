"""Lowers timm's RandAugment, AutoAugment and AugMix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.pil_or_tensor import Lower, refuse_tensors
from headrace._lowering.policies.operations import Steps, choose_any_branch, choose_any_way
from headrace._lowering.policies.timm_arguments import Arguments, Operation
from headrace._lowering.policies.timm_operations import ways_of_operation
from headrace._lowering.transform_library import class_origin
from headrace._recipe.steps.draw_columns import ChainWeights, Column

_MOST_BRANCHES = 4096  # of a choice without repetition
_ANY_DEPTH = 3  # of AugMix's chains, if their depth is drawn
_MOST_MIXED = 64  # operations of AugMix: each has columns for every number that it may draw


def rand_augment(builder: Builder, transform: Any, library: str) -> str:
    layers = int(transform.num_layers)
    if layers == 0:
        return "nothing"
    names = ", ".join(one.name for one in transform.ops)
    if transform.choice_weights is not None:
        choices = [_draw_choice(builder) for _ in range(layers)]
        builder.add(_without_repetition(builder, transform, choices, ()))
        return f"native {layers} different ones of {len(transform.ops)} operations ({names}), by weight"
    for _ in range(layers):
        builder.add(_any_operation(builder, transform.ops))
    return f"native {layers} times one of {len(transform.ops)} operations ({names})"


def _any_operation(builder: Builder, operations: Sequence[Operation]) -> S.OneOf:
    """Returns a choice among operations with equal shares."""
    choice, count = _draw_choice(builder), len(operations)
    branches = [
        (choice.make_step(builder, one, number / count, (number + 1) / count),) for number, one in enumerate(operations)
    ]
    return choose_any_branch(branches, choice.chosen)


def _without_repetition(
    builder: Builder, transform: Any, choices: Sequence[_Choice], before: tuple[int, ...]
) -> S.OneOf:
    """Returns a choice by weight among the operations that were not done `before`, then in the same way the others.

    numpy redraws what it has drawn before, which gives each operation its share of the weight that is left.
    """
    weights = [float(one) for one in transform.choice_weights]
    left = [number for number, weight in enumerate(weights) if number not in before and weight > 0]
    if len(left) < len(choices) or len(transform.ops) ** len(choices) > _MOST_BRANCHES:
        builder.refuse(f"chooses {len(choices)} different ones of {len(left)} operations, which has no native twin")
    total, below, bounds, branches = sum(weights[number] for number in left), 0.0, [], []
    for number in left:
        low, below = below, below + weights[number] / total
        high = 1.0 if number == left[-1] else below
        # After the first choice the bounds depend on the operations before, but the argument's column does not.
        shares = (0.0, 1.0) if before else (low, high)
        steps: Steps = (choices[0].make_step(builder, transform.ops[number], *shares),)
        if len(choices) > 1:
            steps += (_without_repetition(builder, transform, choices[1:], (*before, number)),)
        branches.append(steps)
        bounds.append(high)
    return S.OneOf(tuple(branches), tuple(bounds), choices[0].chosen)


def auto_augment(builder: Builder, transform: Any, library: str) -> str:
    chosen = builder.draw(Column())
    count, longest = len(transform.policy), max(len(some) for some in transform.policy)
    draws = [(builder.draw(Column()), builder.draw(Column())) for _ in range(longest)]
    choices = [_Choice(chosen, done, way, Arguments(builder, way)) for done, way in draws]
    branches = [
        tuple(
            choice.make_step(builder, one, number / count, (number + 1) / count)
            for one, choice in zip(some, choices, strict=False)
        )
        for number, some in enumerate(transform.policy)
    ]
    builder.add(choose_any_branch(branches, chosen))
    return f"native one of {len(branches)} series of operations"


def aug_mix(builder: Builder, transform: Any, library: str) -> str:
    width, depth, alpha = int(transform.width), int(transform.depth), float(transform.alpha)
    count = width * (depth if depth > 0 else _ANY_DEPTH)
    if not 1 <= count <= _MOST_MIXED:
        builder.refuse(f"mixes {count} operations; natively between 1 and {_MOST_MIXED} of them")
    if not transform.ops:
        builder.refuse("has no operations")
    if not 0 < alpha < math.inf:
        builder.refuse("alpha must be positive and finite")
    chains = [_make_chain(builder, transform.ops, depth) for _ in range(width)]
    blended, drawn = bool(transform.blended), builder.draw(Column())
    first = builder.draw(*[ChainWeights(drawn, drawn + 1, width, alpha, blended)] * (width + 1))
    builder.add(S.MixChains(tuple(chains), blended, first))
    deep = depth if depth > 0 else f"1 to {_ANY_DEPTH}"
    names = ", ".join(one.name for one in transform.ops)
    return f"native mix of {width} chains of {deep} of {len(transform.ops)} operations ({names})"


def _make_chain(builder: Builder, operations: Sequence[Operation], depth: int) -> Steps:
    """Returns `depth` operations, or one to three with equal probability."""
    if depth > 0:
        return tuple(_any_operation(builder, operations) for _ in range(depth))
    drawn = builder.draw(Column())
    steps: Steps = ()
    for number in range(_ANY_DEPTH):  # the last operation first: it is done with probability 1/3
        steps = (S.When((number + 1) / _ANY_DEPTH, (_any_operation(builder, operations), *steps), drawn),)
    return steps


@dataclass(frozen=True)
class _Choice:
    """The columns of one operation among several: which, whether it is done, its way, and those of its argument."""

    chosen: int
    happens: int
    way: int
    arguments: Arguments

    def make_step(self, builder: Builder, operation: Operation, low: float, high: float) -> S.When:
        """Returns the operation, done with its probability; it is chosen where column `chosen` is in [low, high)."""
        if class_origin(type(operation)) != ("timm", "AugmentOp"):
            builder.refuse(f"has an operation of the class {type(operation).__name__}, which is not timm's AugmentOp")
        self.arguments.among = self.chosen, low, high
        return S.When(
            float(operation.prob),
            choose_any_way(ways_of_operation(builder, operation, self.arguments), self.way),
            self.happens,
        )


def _draw_choice(builder: Builder) -> _Choice:
    chosen, happens, way = (builder.draw(Column()) for _ in range(3))
    return _Choice(chosen, happens, way, Arguments(builder, way))


LOWERS: dict[str, Lower] = {
    "RandAugment": refuse_tensors(rand_augment),
    "AutoAugment": refuse_tensors(auto_augment),
    "AugMixAugment": refuse_tensors(aug_mix),
}
