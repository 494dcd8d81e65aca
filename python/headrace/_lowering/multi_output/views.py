"""Lowers a Views: one recipe for each of its transforms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from headrace._base.types import Function
from headrace._lowering.builder import Builder, LoweringError
from headrace._lowering.transform_library import class_origin, has_hooks, leaf_transforms
from headrace._recipe.steps.recipe import Recipe

#: Lowers steps, all natively, into a builder, and returns the recipe with outputs of a dtype.
LowerSteps = Callable[[list[Function], Builder, torch.dtype | None, bool], Recipe]


def lower_views(steps: list[Function], dtype: torch.dtype | None, builder: Builder, lower_steps: LowerSteps) -> Recipe:
    """Returns a recipe with one view for each transform of a Views, after the steps that they have in common.

    The views use one list of columns. The common steps have columns in it once, so all views draw the same for them.

    Raises:
        LoweringError: the Views is not the last step, or a view cannot be lowered.
    """
    names_of_steps = [(class_origin(type(step)) or ("", ""))[1] for step in steps]
    if names_of_steps.index("Views") != len(steps) - 1 or {"ByAspectRatio", "FiveCrop", "TenCrop"} & {*names_of_steps}:
        raise LoweringError(
            "Views returns several images, so it must be the last step, occur only once, and not follow "
            "ByAspectRatio, FiveCrop or TenCrop; put the steps after it into each of its transforms"
        )
    if has_hooks(steps[-1]):
        raise LoweringError("Views has forward hooks or a replaced method, which would not run; remove them")
    views: Any = steps[-1]
    common, transforms = steps[:-1], views.transforms
    keyed = isinstance(transforms, Mapping)
    made: list[Recipe] = []
    where = "Views: "
    try:
        builder.lower(common)
        for key, transform in transforms.items() if keyed else enumerate(transforms, 1):
            where = f"Views: view {key!r}: "
            restore = builder.checkpoint()
            made.append(lower_steps(list(leaf_transforms(transform)), builder, dtype, True))
            columns = builder.columns
            restore()
            builder.columns = columns
    except LoweringError as refusal:
        raise LoweringError(f"{where}{refusal}; views are native only if all their steps are") from refusal
    if any(one.texture is not None for one in made):
        raise LoweringError("Views: TextureChannels is not native in a view; put it after the loader, or leave it out")
    made = [replace(one, columns=tuple(builder.columns)) for one in made]
    keys = tuple(transforms) if keyed else ()
    names = list(made[0].names[: len(common)])
    for key, one in zip(keys or range(1, len(made) + 1), made, strict=True):
        names += [(f"view {key!r}: {name}", how) for name, how in one.names[len(common) :]]
    return replace(made[0], names=tuple(names), views=tuple(made), view_names=keys)
