"""Lowers timm's own transforms; timm is recognised, never imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace.recipe.steps as S
from headrace.lowering.builder import Builder
from headrace.lowering.erasing import add_erasing, add_noise
from headrace.lowering.geometry import pair, resized_crops
from headrace.lowering.images import Lower, on_images
from headrace.lowering.pointwise import tensor_step
from headrace.lowering.policies import timm_policies
from headrace.pixels import pillow_ops
from headrace.recipe.recipe import Column
from headrace.transforms import filter_name

_MOST_BOXES = 100  # of RandomErasing: each has a column for every number that it may draw


def random_resized_crop(builder: Builder, transform: Any, library: str) -> str:
    """Lowers to torchvision's crop; they differ only for images of a few pixels, where timm's box may be empty."""
    # The choice of the filter does not affect the box: the crops share its columns.
    return _one_of(builder, resized_crops(builder, transform, _filters(transform)))


def center_crop_or_pad(builder: Builder, transform: Any, library: str) -> str:
    height, width = pair(builder, transform.size)
    if transform.padding_mode != "constant":
        builder.refuse('mirrors or repeats the border, which has no native twin; use padding_mode="constant"')
    return builder.add(S.CenterCrop(height, width, pillow_ops.fill_color(transform.fill, builder.channels)))


def resize_keep_ratio(builder: Builder, transform: Any, library: str) -> str:
    if transform.random_scale_prob > 0 or transform.random_aspect_prob > 0:
        builder.refuse(
            "draws a scale or an aspect ratio, which has no native twin; use RandomResizedCropAndInterpolation"
        )
    if not 0 <= transform.longest <= 1:
        builder.refuse("longest must be between 0 and 1")
    height, width = pair(builder, transform.size)
    resizes = [S.ResizeKeepRatio(height, width, float(transform.longest), name) for name in _filters(transform)]
    return _one_of(builder, resizes)


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


def _filters(transform: Any) -> list[str]:
    """Returns the filters that a transform chooses from; one, unless its interpolation is "random"."""
    modes = transform.interpolation if isinstance(transform.interpolation, tuple) else (transform.interpolation,)
    return [filter_name(mode) for mode in modes]


def _one_of(builder: Builder, steps: Sequence[S.Step]) -> str:
    if len(steps) == 1:
        return builder.add(steps[0])
    bounds = tuple((i + 1) / len(steps) for i in range(len(steps)))
    return builder.add(S.OneOf(tuple((step,) for step in steps), bounds, builder.draw(Column())))


def _refused(reason: str) -> Lower:
    def refuse(builder: Builder, transform: Any, library: str) -> str:
        builder.refuse(reason)

    return refuse


LOWERS: dict[str, Lower] = {
    **timm_policies.LOWERS,
    "RandomResizedCropAndInterpolation": on_images(random_resized_crop),
    "CenterCropOrPad": on_images(center_crop_or_pad),
    "ResizeKeepRatio": on_images(resize_keep_ratio),
    "RandomErasing": random_erasing,
    "MaybeToTensor": tensor_step,
    "MaybePILToTensor": tensor_step,
    "ToTensor": _refused("makes floats up to 255; use MaybePILToTensor() and a conversion of torchvision's"),
    "ToNumpy": _refused("makes arrays; use MaybePILToTensor(), which makes tensors of the same bytes"),
}
