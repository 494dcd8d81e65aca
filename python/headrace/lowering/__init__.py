"""Lowers a dataset's transforms to a recipe, or says which step cannot be lowered, why, and what to do."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from headrace.lowering import colour, containers, erasing, geometry, pointwise, timm
from headrace.lowering.builder import Builder, LoweringError
from headrace.lowering.images import Lower
from headrace.recipe import Recipe
from headrace.recognition import class_origin, has_hooks

__all__ = ["LoweringError", "lower"]

#: By class name, timm's apart: appends the transform's steps and returns what `explain` shows.
_LOWERS: dict[str, Lower] = {
    **pointwise.LOWERS,
    **geometry.LOWERS,
    **colour.LOWERS,
    **containers.LOWERS,
    **erasing.LOWERS,
}


def lower(transform: Any, *, dtype: torch.dtype | None = None) -> Recipe:
    """The recipe of `transform`.

    Args:
        transform: a transform of headrace.transforms, torchvision.transforms, torchvision.transforms.v2 or timm.data,
            or a Compose or nn.Sequential of them. It is not changed; its pointwise steps are kept and called.
        dtype: a last conversion, unscaled, to float32, float16, bfloat16 or uint8; None leaves the transforms' dtype.

    Raises:
        LoweringError: a step, an option or an order that has no native twin.
    """
    if transform is None:
        raise LoweringError(
            "the dataset has no transform, so its images have no common size; give it one that ends in ToTensor() or "
            "ToImage()"
        )
    builder = Builder(_add)
    builder.lower([transform])
    return builder.finish(dtype)


def _add(builder: Builder, transform: Any) -> None:
    builder.current = transform
    home, name = class_origin(type(transform)) or ("", "")
    lowers = timm.LOWERS if home == "timm" else _LOWERS
    if has_hooks(transform):
        builder.refuse("has forward hooks or a replaced method, which would not run; remove them")
    if name == "Identity":
        lowered = "nothing"
    elif name not in lowers:
        _refuse_unknown(builder, transform)
    else:
        try:
            lowered = lowers[name](builder, transform, home)
        except (ValueError, TypeError) as error:
            if isinstance(error, LoweringError):
                raise
            builder.refuse(str(error), error)
    builder.note(lowered)


def _refuse_unknown(builder: Builder, transform: Any) -> NoReturn:
    for base in type(transform).__mro__[1:]:
        name = (class_origin(base) or ("", ""))[1]
        if name in _LOWERS:
            builder.refuse(f"is a subclass that may do something else than {name}; use {name} itself")
    # Such as the presets of torchvision's reference scripts.
    if class_origin(type(getattr(transform, "transforms", None))):
        builder.refuse("is a class that may do something else than its transforms; pass its attribute .transforms")
    builder.refuse("has no native twin in headrace; remove it, or use torch.utils.data.DataLoader for this dataset")
