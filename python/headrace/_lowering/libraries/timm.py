"""Lowers timm's own transforms; timm is recognised, never imported."""

from __future__ import annotations

import operator
from typing import Any

import headrace._recipe.steps.steps as S
from headrace._lowering.builder import Builder
from headrace._lowering.families.erasing import add_erasing, add_noise
from headrace._lowering.families.geometry import add_one_of, area_and_ratio, checked_size, resized_crops
from headrace._lowering.families.pointwise import tensor_step
from headrace._lowering.pil_or_tensor import Lower, refuse_tensors
from headrace._lowering.policies import timm_policies
from headrace._recipe.arithmetic import functional_pil
from headrace._recipe.steps.draw_columns import Column
from headrace.transforms import filter_name

_MOST_BOXES = 100  # of RandomErasing: each has a column for every number that it may draw


def random_resized_crop_and_interpolation(builder: Builder, transform: object, library: str) -> str:
    """Lowers to torchvision's crop; they differ only for images of a few pixels, where timm's box may be empty."""
    # The choice of the filter does not affect the box: the crops share its columns.
    return add_one_of(builder, resized_crops(builder, transform, _filters(transform)))


def center_crop_or_pad(builder: Builder, transform: Any, library: str) -> str:
    height, width = checked_size(builder, transform.size)
    fill = functional_pil.fill_color(transform.fill, builder.channels)
    return builder.add(S.CenterCrop(height, width, fill, padding_mode=_padding_mode(builder, transform)))


def resize_keep_ratio(builder: Builder, transform: Any, library: str) -> str:
    if not 0 <= transform.longest <= 1:
        builder.refuse("longest must be between 0 and 1")
    height, width = checked_size(builder, transform.size)
    target, filters = (height, width, float(transform.longest)), _filters(transform)
    scale_p, aspect_p = max(transform.random_scale_prob, 0.0), max(transform.random_aspect_prob, 0.0)
    if not scale_p and not aspect_p:
        return add_one_of(builder, [S.ResizeKeepRatio(*target, name) for name in filters])
    scale, aspect = area_and_ratio(builder, transform.random_scale_range, transform.random_aspect_range)
    if scale.low <= 0:
        builder.refuse("random_scale_range must be positive")
    draw = builder.draw(Column(), scale, Column(), aspect)
    chances = float(scale_p), bool(transform.random_scale_area), float(aspect_p)
    return add_one_of(builder, [S.RandomKeepRatio(*target, name, *chances, draw) for name in filters])


def random_crop_or_pad(builder: Builder, transform: Any, library: str) -> str:
    height, width = checked_size(builder, transform.size)
    fill = functional_pil.fill_color(transform.fill, builder.channels)
    mode = _padding_mode(builder, transform)
    return builder.add(S.RandomCropOrPad(height, width, fill, mode, builder.draw(Column(), Column())))


def random_pad(builder: Builder, transform: Any, library: str) -> str:
    height, width = checked_size(builder, transform.input_size)
    fill = functional_pil.fill_color(transform.fill, builder.channels)
    return builder.add(S.RandomPad(height, width, fill, builder.draw(Column(), Column())))


def trim_border(builder: Builder, transform: Any, library: str) -> str:
    border = operator.index(transform.border_size)
    if border < 0 or (builder.size is not None and min(builder.size) <= 2 * border):
        builder.refuse("leaves no pixels, or has a negative border")
    return builder.add(S.Pad((-border,) * 4, (0, 0, 0), "constant"))


def random_erasing(builder: Builder, transform: Any, library: str) -> str:
    counts = int(transform.min_count), int(transform.max_count)
    if not 1 <= counts[0] <= counts[1] <= _MOST_BOXES:
        builder.refuse(f"erases {counts[0]} to {counts[1]} boxes; natively between 1 and {_MOST_BOXES} of them")
    area = Column(float(transform.min_area), float(transform.max_area))
    low, high = transform.log_aspect_ratio
    aspect = Column(low, high, exp=True)
    if transform.rand_color or transform.per_pixel:
        noise = "channel" if transform.rand_color else "element"
        return add_noise(builder, transform.probability, (area, aspect), noise, counts)
    return add_erasing(builder, transform.probability, (area, aspect), [0.0], counts)


def _padding_mode(builder: Builder, transform: Any) -> str:
    if transform.padding_mode not in functional_pil.PADDING_MODES:
        builder.refuse("padding_mode must be constant, edge, reflect or symmetric")
    return str(transform.padding_mode)


def _filters(transform: Any) -> list[str]:
    """Returns the filters that a transform chooses from; one, unless its interpolation is "random"."""
    modes = transform.interpolation if isinstance(transform.interpolation, tuple) else (transform.interpolation,)
    return [filter_name(mode) for mode in modes]


def _make_refusal(reason: str) -> Lower:
    def refuse(builder: Builder, transform: object, library: str) -> str:
        builder.refuse(reason)

    return refuse


LOWERS: dict[str, Lower] = {
    **timm_policies.LOWERS,
    "RandomResizedCropAndInterpolation": refuse_tensors(random_resized_crop_and_interpolation),
    "CenterCropOrPad": refuse_tensors(center_crop_or_pad),
    "ResizeKeepRatio": refuse_tensors(resize_keep_ratio),
    "RandomCropOrPad": refuse_tensors(random_crop_or_pad),
    "RandomPad": refuse_tensors(random_pad),
    "TrimBorder": refuse_tensors(trim_border),
    "RandomErasing": random_erasing,
    "MaybeToTensor": tensor_step,
    "MaybePILToTensor": tensor_step,
    "ToTensor": _make_refusal("makes floats up to 255; use MaybePILToTensor() and a conversion of torchvision's"),
    "ToNumpy": _make_refusal("makes arrays; use MaybePILToTensor(), which makes tensors of the same bytes"),
}
