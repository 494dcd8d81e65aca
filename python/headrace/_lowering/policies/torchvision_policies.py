"""Lowers RandAugment, TrivialAugmentWide and AutoAugment to choices among constant steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.pil_or_tensor import Lower, lower_either
from headrace._lowering.policies import aug_mix
from headrace._lowering.policies.operations import Operations, choose_any_branch, choose_any_way
from headrace._lowering.policies.tensor_operations import TensorOperations
from headrace._recipe.steps.draw_columns import Column

_BINS_OF_LEARNED = 10  # of AutoAugment's magnitudes


def rand_augment(builder: Builder, transform: Any, library: str) -> str:
    if transform.num_ops == 0:
        return "nothing"
    operations = _operations_of_policy(builder, transform, library, transform.num_magnitude_bins)
    every = [operations.lower(name, transform.magnitude) for name in operations.names]
    for _ in range(transform.num_ops):
        chosen, sign = builder.draw(Column()), builder.draw(Column())
        builder.add(choose_any_branch([choose_any_way(one, sign) for one in every], chosen))
    of = f"magnitude {transform.magnitude} of {transform.num_magnitude_bins}"
    return f"native {transform.num_ops} times one of {_list_operations(operations.names)}, at {of}"


def trivial_augment_wide(builder: Builder, transform: Any, library: str) -> str:
    operations = _operations_of_policy(builder, transform, library, transform.num_magnitude_bins)
    chosen, way = builder.draw(Column()), builder.draw(Column())
    every = [choose_any_way(operations.lower(name, None), way) for name in operations.names]
    builder.add(choose_any_branch(every, chosen))
    return f"native one of {_list_operations(operations.names)}, at one of {transform.num_magnitude_bins} magnitudes"


def auto_augment(builder: Builder, transform: Any, library: str) -> str:
    operations = _operations_of_policy(builder, transform, library, _BINS_OF_LEARNED)
    pairs = transform.policies if library == "v1" else transform._policies
    chosen = builder.draw(Column())
    draws = [(builder.draw(Column()), builder.draw(Column())) for _ in range(2)]
    branches = []
    for pair in pairs:
        parts = zip(pair, draws, strict=True)
        branches.append(
            tuple(
                S.When(float(p), choose_any_way(operations.lower(name, bin), sign), done)
                for (name, p, bin), (done, sign) in parts
            )
        )
    builder.add(choose_any_branch(branches, chosen))
    return f"native one of {len(branches)} pairs of operations, the policy for {transform.policy.value}"


def _operations_of_policy(
    builder: Builder, transform: object, library: str, bins: int
) -> Operations | TensorOperations:
    """Returns the operations of images, or of byte tensors where the image is one at this point."""
    kind = Operations if builder.values is None else TensorOperations
    return kind(builder, transform, library, bins)


def _list_operations(names: Sequence[str]) -> str:
    return f"{len(names)} operations ({', '.join(names)})"


LOWERS: dict[str, Lower] = {
    "RandAugment": lower_either(rand_augment, rand_augment),
    "TrivialAugmentWide": lower_either(trivial_augment_wide, trivial_augment_wide),
    "AutoAugment": lower_either(auto_augment, auto_augment),
    **aug_mix.LOWERS,
}
