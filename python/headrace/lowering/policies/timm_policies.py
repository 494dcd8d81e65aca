"""Lowers timm's RandAugment and AutoAugment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace.recipe.steps as S
from headrace.lowering.builder import Builder
from headrace.lowering.images import Lower, on_images
from headrace.lowering.origins import class_origin
from headrace.lowering.policies.choices import any_of, any_way
from headrace.lowering.policies.operations import Steps
from headrace.lowering.policies.timm_arguments import Arguments
from headrace.lowering.policies.timm_operations import ways_of
from headrace.recipe.recipe import Column


def rand_augment(builder: Builder, transform: Any, library: str) -> str:
    weights = transform.choice_weights
    if weights is not None:
        builder.refuse("chooses operations with weights and without repetition, which has no native twin; leave t out")
    layers = int(transform.num_layers)
    if layers == 0:
        return "nothing"
    for _ in range(layers):
        chosen = builder.draw(Column())
        done, way = builder.draw(Column()), builder.draw(Column())
        arguments = Arguments(builder, way)
        branches: list[Steps] = []
        for number, one in enumerate(transform.ops):
            arguments.among = chosen, number / len(transform.ops), (number + 1) / len(transform.ops)
            branches.append((_done(one, _ways(builder, one, arguments), done, way),))
        builder.add(any_of(branches, chosen))
    names = ", ".join(one.name for one in transform.ops)
    return f"native {layers} times one of {len(transform.ops)} operations ({names})"


def auto_augment(builder: Builder, transform: Any, library: str) -> str:
    chosen = builder.draw(Column())
    longest = max(len(some) for some in transform.policy)
    draws = [(builder.draw(Column()), builder.draw(Column())) for _ in range(longest)]
    places = [(done, way, Arguments(builder, way)) for done, way in draws]
    branches = [
        tuple(
            _done(one, _ways(builder, one, arguments), done, way)
            for one, (done, way, arguments) in zip(some, places, strict=False)
        )
        for some in transform.policy
    ]
    builder.add(any_of(branches, chosen))
    return f"native one of {len(branches)} series of operations"


def _ways(builder: Builder, operation: Any, arguments: Arguments) -> list[Steps]:
    if class_origin(type(operation)) != ("timm", "AugmentOp"):
        builder.refuse(f"has an operation of the class {type(operation).__name__}, which is not timm's AugmentOp")
    return ways_of(builder, operation, arguments)


def _done(operation: Any, ways: Sequence[Steps], done: int, way: int) -> S.When:
    return S.When(float(operation.prob), any_way(ways, way), done)


LOWERS: dict[str, Lower] = {
    "RandAugment": on_images(rand_augment),
    "AutoAugment": on_images(auto_augment),
}
