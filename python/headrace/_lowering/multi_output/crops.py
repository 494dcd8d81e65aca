"""Lowers a FiveCrop or TenCrop, and the steps after it, to one recipe for each crop."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._base.types import Function
from headrace._lowering.builder import Builder, LoweringError
from headrace._lowering.families.geometry import checked_size
from headrace._lowering.multi_output.stacked_crops import functions_stacked_by
from headrace._lowering.multi_output.views import LowerSteps
from headrace._lowering.transform_library import class_origin, has_hooks, leaf_transforms
from headrace._recipe.images.part_kinds import kind_of
from headrace._recipe.steps.draw_columns import Column
from headrace._recipe.steps.recipe import Recipe

#: Two crops of one image.
Crops = tuple[Image.Image, Image.Image] | tuple[torch.Tensor, torch.Tensor]

_LIBRARIES = ("headrace", "v1", "v2")
_CORNERS = ((False, False), (False, True), (True, False), (True, True))  # bottom, right


class _Following(NamedTuple):
    """A step after the crops."""

    step: Function
    each: list[Function] | None  # what it applies to each crop before it stacks them; None if it does not stack

    @property
    def steps(self) -> list[Function]:
        return [self.step] if self.each is None else [leaf for one in self.each for leaf in leaf_transforms(one)]


def first_crop_step(steps: Sequence[object]) -> int | None:
    """Returns the number of the first step that is a FiveCrop or TenCrop; None without one."""
    found = {(library, name) for library in _LIBRARIES for name in ("FiveCrop", "TenCrop")}
    return next((n for n, step in enumerate(steps) if class_origin(type(step)) in found), None)


def lower_crops(
    steps: list[Function], at: int, dtype: torch.dtype | None, builder: Builder, lower_steps: LowerSteps
) -> Recipe:
    """Returns a recipe with one view for each crop of the FiveCrop or TenCrop ``steps[at]``.

    Raises:
        LoweringError: a step is not native, or one after the crops does not do the same to each of them.
    """
    crop: Any = steps[at]
    following = [_Following(step, called_after_crops(step)) for step in steps[at + 1 :]]
    stacks = any(one.each is not None for one in following)
    try:
        builder.lower(steps[:at])
        builder.current = crop
        height, width = _check_size(builder, crop)
        begun = _make_trial_crops(builder, height, width)
        flip = builder.draw(Column()) if hasattr(crop, "vertical_flip") else None
        made = []
        for mirrored, corner in itertools.product([False] if flip is None else [False, True], (*_CORNERS, None)):
            restore, columns = builder.checkpoint(), len(builder.columns)
            if mirrored:
                builder.add((S.VerticalFlip if crop.vertical_flip else S.HorizontalFlip)(1.0, flip or 0))
            builder.add(S.CenterCrop(height, width) if corner is None else S.CornerCrop(height, width, *corner))
            count = 5 if flip is None else 10
            builder.note(f"native {count} crops{', stacked' if stacks else ''}")
            made.append(lower_steps([leaf for one in following for leaf in one.steps], builder, dtype, True))
            if len(builder.columns) > columns or made[-1].texture is not None:
                builder.refuse("comes after several crops, where only steps without random numbers are native")
            restore()
        kind = _check_together(builder, following, begun)
    except LoweringError as refusal:
        raise LoweringError(f"{refusal}; the steps after {type(crop).__name__} must all be native") from refusal
    made = [replace(one, columns=tuple(builder.columns)) for one in made]
    return replace(
        made[0], views=tuple(made), packing="stack" if stacks else "tuple", kind=kind if stacks else made[0].kind
    )


def called_after_crops(step: Function) -> list[Function] | None:
    """Returns what a step applies to each of several crops before it stacks them; None if it does anything else."""
    return functions_stacked_by(_unwrap_lambda(step))


def _unwrap_lambda(step: Any) -> Any:
    """Returns the function of torchvision v1's Lambda; of any other step, the step itself."""
    is_lambda = class_origin(type(step)) == ("v1", "Lambda") and not has_hooks(step)
    return step.lambd if is_lambda else step


def _check_size(builder: Builder, crop: Any) -> tuple[int, int]:
    """Returns (height, width) of a crop."""
    if has_hooks(crop):
        builder.refuse("has forward hooks or a replaced method, which would not run; remove them")
    ours = (class_origin(type(crop)) or ("", ""))[0] == "headrace"
    if builder.written or (builder.values is not None and ours):
        builder.refuse(f"has a native twin on PIL images only; put it before {builder.converter}")
    return checked_size(builder, crop.size)


def _make_trial_crops(builder: Builder, height: int, width: int) -> Crops:
    """Returns two different crops as the steps after them get them."""
    if builder.values is not None:
        other = deepcopy(builder.values)  # deepcopy keeps the tensor's kind
        other[...] = builder.values.flip(-1)
        return deepcopy(builder.values), other
    ramp = Image.radial_gradient("L").resize((width, height))
    bands = [ramp, ramp.point(lambda value: value // 2), ramp.point(lambda value: 255 - value)]
    image = ramp if builder.channels == 1 else Image.merge("RGB", bands)
    return image, image.transpose(Image.Transpose.ROTATE_180).point(lambda value: value ^ 37)


def _check_together(builder: Builder, following: list[_Following], begun: Crops) -> type[torch.Tensor]:
    """Tries the steps on a tuple of crops, and returns the class of what they make of it.

    A step that changes one element of a tuple alone, or takes no tuples, is found here: torchvision v1's do not, and
    those of v2 change only the first of several plain tensors.

    Raises:
        LoweringError: a step does not do to all crops what it does to one.
    """
    together: Any = begun
    apart: list[Any] = list(begun)
    for one in following:
        builder.current = one.step
        each = [one.step] if one.each is None else one.each
        try:
            together = _unwrap_lambda(one.step)(deepcopy(together))
            for function in each:
                apart = [function(deepcopy(element)) for element in apart]
        except (TypeError, ValueError, RuntimeError) as error:
            builder.refuse(str(error), error)
        if not _are_same_results(together, apart):
            builder.refuse(
                "does not do the same to each of several crops; use transforms of torchvision v2 from ToImage on"
            )
    return type(together)


def _are_same_results(together: object, apart: list[Any]) -> bool:
    if isinstance(together, torch.Tensor):
        return torch.equal(together.as_subclass(torch.Tensor), torch.stack([_as_plain_tensor(one) for one in apart]))
    if not isinstance(together, (tuple, list)) or len(together) != len(apart):
        return False
    return all(
        kind_of(a) is kind_of(b) and a.dtype == b.dtype and torch.equal(_as_plain_tensor(a), _as_plain_tensor(b))
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        else isinstance(a, Image.Image) and a == b
        for a, b in zip(together, apart, strict=True)
    )


def _as_plain_tensor(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(torch.Tensor)
