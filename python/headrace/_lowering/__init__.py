"""Lowers a dataset's transforms to a recipe, or raises an error with the step, the reason and a remedy.

Decisions: 0009, 0023, 0030.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import torch

import headrace._recipe.steps.steps as S
from headrace._base.types import Function
from headrace._lowering.builder import Builder, LoweringError
from headrace._lowering.families import (
    blur_and_textures,
    colour,
    containers,
    drawn_sizes,
    erasing,
    geometry,
    pointwise,
    warps,
)
from headrace._lowering.libraries import albumentations, hf_processors, timm
from headrace._lowering.libraries.albumentations_wrappers import wrapped_compose
from headrace._lowering.multi_output import crops, views
from headrace._lowering.pil_or_tensor import Lower
from headrace._lowering.policies import torchvision_policies as policies
from headrace._lowering.python_steps import python_call as python_steps
from headrace._lowering.sizes import Size
from headrace._lowering.transform_library import class_origin, has_hooks, leaf_transforms
from headrace._recipe.steps.draw_columns import AnyColumn
from headrace._recipe.steps.recipe import Recipe

__all__ = ["LoweringError", "drawn_by", "lower"]

#: Class name -> function that appends the transform's steps and returns its line of `explain`; timm has its own table.
_LOWERS: dict[str, Lower] = {
    **pointwise.LOWERS,
    **geometry.LOWERS,
    **colour.LOWERS,
    **blur_and_textures.LOWERS,
    **policies.LOWERS,
    **containers.LOWERS,
    **erasing.LOWERS,
    **hf_processors.LOWERS,
    **warps.LOWERS,
    **drawn_sizes.LOWERS,
}


def lower(
    transform: object,
    *,
    dtype: torch.dtype | None = None,
    channels: int = 3,
    size: tuple[int, int] | None = None,
    mode: str = "RGB",
    native_only: bool = False,
    may_vary: bool = False,
) -> Recipe:
    """Returns the recipe of `transform`.

    Args:
        transform: a transform of headrace.transforms, torchvision.transforms, torchvision.transforms.v2 or timm.data,
            or a Compose or nn.Sequential of them. It is not changed; the recipe keeps its pointwise steps and calls
            them.
        dtype: dtype of the outputs, converted to without scaling: float32, float16, bfloat16 or uint8. None: the
            transforms' dtype.
        channels: channels of the input images: 3 (mode RGB) or 1 (mode L).
        size: (height, width) of every input image; None if it varies.
        mode: mode in which encoded images are opened: "RGB", "L" or "P"; the last two make images of 1 channel.
        native_only: whether to refuse a step, an option or an order that has no native twin, instead of calling it in
            Python.
        may_vary: whether outputs may have different sizes; then the recipe `varies` if they do.

    Raises:
        LoweringError: a step is refused, or the outputs would not be tensors of one dtype, and of one shape unless they
            may vary.
    """
    if transform is None:
        raise LoweringError(
            "the dataset has no transform, so its images have no common size; give it one that ends in ToTensor() or "
            "ToImage()"
        )
    steps = list(leaf_transforms(transform))
    by_ratio = _find_steps_of_class(steps, "ByAspectRatio")
    if _find_steps_of_class(steps, "Views"):
        return views.lower_views(steps, dtype, _make_builder(channels, size, mode), _lower)
    if (at := crops.first_crop_step(steps)) is not None:
        return crops.lower_crops(steps, at, dtype, _make_builder(channels, size, mode), _lower)
    if not by_ratio:
        return _lower(steps, _make_builder(channels, size, mode), dtype, native_only, may_vary)
    if by_ratio != [0] or has_hooks(steps[0]):
        raise LoweringError(
            "ByAspectRatio depends on the size of the original image, so it must be the first step and occur only once"
        )
    if mode != "RGB":
        raise LoweringError(f"ByAspectRatio needs images of mode RGB, not {mode}; leave it or the mode out")
    return _lower_variants(steps[0], steps[1:], dtype, channels, size, native_only)


def _find_steps_of_class(steps: list[Function], name: str) -> list[int]:
    """Returns the numbers of the steps that are of this class of headrace."""
    return [n for n, step in enumerate(steps) if class_origin(type(step)) == ("headrace", name)]


def columns_drawn_by(
    transform: object, *, channels: int = 3, size: tuple[int, int] | None = None, mode: str = "RGB"
) -> tuple[AnyColumn, ...]:
    """Returns the columns of a recipe that begins with `transform`, a transform of PIL images, as far as it draws them.

    Args:
        channels, size, mode: as in `lower`.

    Raises:
        LoweringError: a step has no native twin.
    """
    builder = _make_builder(channels, size, mode)
    builder.lower([transform])
    return tuple(builder.columns)


def _make_builder(channels: int, size: Size, mode: str) -> Builder:
    builder = Builder(_lower_transform, channels, size)
    builder.mode = mode
    if mode != "RGB":
        builder.add(S.Grayscale(1))  # the native decoder makes RGB
    return builder


def _lower_variants(
    by_ratio: Any, rest: list[Function], dtype: torch.dtype | None, channels: int, size: Size, native_only: bool
) -> Recipe:
    """Returns a recipe with one variant for each output size of a ByAspectRatio; they use one list of columns."""
    columns: list[AnyColumn] = []
    made: list[Recipe] = []
    for wanted, transform in by_ratio.transforms.items():
        steps = [*leaf_transforms(transform), *rest]
        one = _lower(steps, Builder(_lower_transform, channels, size), dtype, native_only)
        # Variants with equal columns share them: a sample then draws the same numbers, whatever its size.
        if made and one.columns != made[0].columns:
            builder = Builder(_lower_transform, channels, size)
            builder.columns = columns
            one = _lower(steps, builder, dtype, native_only)
        if (one.height, one.width) != wanted:
            raise LoweringError(f"ByAspectRatio: the transform for {wanted} has outputs of {(one.height, one.width)}")
        columns = max(columns, list(one.columns), key=len)
        made.append(one)
    made = [replace(one, columns=tuple(columns)) for one in made]
    for one in made[1:]:
        if not one.maps_bytes_as(made[0]):
            raise LoweringError("ByAspectRatio: its transforms map bytes to different values; only sizes may differ")
    names: list[tuple[str, str]] = []
    in_python: set[int] = set()
    for one in made:
        in_python |= {number + len(names) for number in one.in_python}
        names += [(f"{one.height} x {one.width}: {name}", how) for name, how in one.names]
    return replace(made[0], names=tuple(names), in_python=frozenset(in_python), variants=tuple(made))


def _lower(
    steps: list[Function], builder: Builder, dtype: torch.dtype | None, native_only: bool, may_vary: bool = False
) -> Recipe:
    cast = [] if dtype in (None, torch.float32) else [f"dtype={dtype}"]
    for number, step in enumerate(steps):
        names = [getattr(one, "__name__", type(one).__name__) for one in steps[number + 1 :]]
        builder.following = next(iter([*names, *cast]), "")
        before = builder.checkpoint()
        try:
            if builder.rest is not None:
                raise LoweringError("comes after a step that runs in Python")
            _lower_transform(builder, step)
        except LoweringError as refusal:
            if native_only:
                raise
            before()
            builder.current = step
            builder.note(python_steps.append_python_call(builder, step, refusal.reason), in_python=True)
    try:
        return (
            builder.finish(dtype, may_vary) if builder.rest is None else python_steps.append_final_call(builder, dtype)
        )
    except ValueError as error:
        raise LoweringError(str(error)) from error


def _lower_transform(builder: Builder, transform: object) -> None:
    builder.current = transform
    library, name = class_origin(type(transform)) or ("", "")
    lowers = timm.LOWERS if library == "timm" else _LOWERS
    if has_hooks(transform):
        builder.refuse("has forward hooks or a replaced method, which would not run; remove them")
    if name == "Identity":
        lowered = "nothing"
    elif (compose := wrapped_compose(transform)) is not None:
        lowered = albumentations.lower_compose(builder, compose)
    elif name not in lowers:
        _refuse_unknown(builder, transform)
    else:
        try:
            lowered = lowers[name](builder, transform, library)
        except (ValueError, TypeError) as error:
            if isinstance(error, LoweringError):
                raise
            builder.refuse(str(error), error)
    builder.note(lowered)


def _refuse_unknown(builder: Builder, transform: object) -> NoReturn:
    for base in type(transform).__mro__[1:]:
        name = (class_origin(base) or ("", ""))[1]
        if name in _LOWERS:
            builder.refuse(f"is a subclass that may behave differently from {name}; use {name} itself")
    if class_origin(type(getattr(transform, "transforms", None))):
        builder.refuse("is a class that may do more than apply its transforms; pass its attribute .transforms")
    builder.refuse("has no native twin")
