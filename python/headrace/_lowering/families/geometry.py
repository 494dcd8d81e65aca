"""Lowers the transforms that crop, pad, resize, flip and gray a PIL image."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, SupportsIndex

from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._base import messages
from headrace._lowering.builder import Builder
from headrace._lowering.pil_or_tensor import Lower, refuse_tensors
from headrace._recipe.arithmetic import boxes, functional_pil, tensor_rule, torch_resize_blur
from headrace._recipe.steps.draw_columns import Column
from headrace.transforms import ResizedCenterCrop, filter_name

# A flip of a tensor commutes with the pointwise steps before it, so it may be done on the image. It does not commute
# with an Erase, so it stays after it.


def flip_horizontal(builder: Builder, transform: Any, library: str) -> str:
    return builder.add(S.HorizontalFlip(float(transform.p), builder.draw(Column())))


def flip_vertical(builder: Builder, transform: Any, library: str) -> str:
    return builder.add(S.VerticalFlip(float(transform.p), builder.draw(Column())))


def resize(builder: Builder, transform: Any, library: str) -> str:
    size, max_size = transform.size, transform.max_size
    edges = [] if size is None else [size] if isinstance(size, int) else list(size)
    if len(edges) == 2 and max_size is not None:
        builder.refuse("max_size requires a size of one number, the shorter edge; leave it out")
    filter = image_filter(builder, transform, library, edges[-1] if edges and max_size is None else 1)
    if len(edges) == 2:
        height, width = _checked_positive(builder, edges)
        return builder.add(S.Resize(height, width, filter))
    edge = _checked_positive(builder, edges)[0] if edges else 0
    limit = None if max_size is None else _checked_positive(builder, [max_size])[0]
    boxes.resize_by_edge(1, 1, edge or None, limit)  # raises torchvision's errors
    return builder.add(S.ResizeShorter(edge, limit, filter))


def center_crop(builder: Builder, transform: Any, library: str) -> str:
    height, width = checked_size(builder, transform.size)
    return builder.add(S.CenterCrop(height, width))


def random_resized_crop(builder: Builder, transform: Any, library: str) -> str:
    filter = image_filter(builder, transform, library, transform.size[1])
    return builder.add(*resized_crops(builder, transform, [filter]))


def resized_center_crop(builder: Builder, transform: ResizedCenterCrop, library: str) -> str:
    """Appends a RandomResizedCrop that always takes its fall-back: each try asks for four times the image's area."""
    height, width = checked_size(builder, transform.size)
    never = Column(4.0, 4.0)
    draw = builder.draw(*[never, Column(1.0, 1.0)] * 10, Column(), Column())
    ratio = width / height
    filter = image_filter(builder, transform, library, width)
    return builder.add(S.RandomResizedCrop(height, width, (4.0, 4.0), (ratio, ratio), filter, draw))


def resized_crops(builder: Builder, transform: Any, filters: Sequence[str]) -> list[S.RandomResizedCrop]:
    """Returns the transform's crop once for each filter; all of them share their columns."""
    height, width = checked_size(builder, transform.size)
    share, aspect = area_and_ratio(builder, transform.scale, transform.ratio)
    if builder.values is not None and (round(transform.ratio[1]) < 1 or round(1 / transform.ratio[0]) < 1):
        builder.refuse("may crop an empty box from a very thin image, which torch's resize of a tensor rejects")
    narrow, wide = transform.ratio
    scale, ratio = (share.low, share.high), (float(narrow), float(wide))
    draw = builder.draw(*[share, aspect] * 10, Column(), Column())
    return [S.RandomResizedCrop(height, width, scale, ratio, filter, draw) for filter in filters]


def area_and_ratio(builder: Builder, scale: Sequence[float], ratio: Sequence[float]) -> tuple[Column, Column]:
    """Returns the columns of an area fraction, uniform in `scale`, and of an edge ratio, log-uniform in `ratio`."""
    if len(scale) != 2 or len(ratio) != 2:
        builder.refuse("scale and ratio must be two numbers each")
    (low, high), (narrow, wide) = scale, ratio
    if not 0 <= low <= high < math.inf or not 0 < narrow <= wide < math.inf:
        builder.refuse("scale and ratio must be finite (smallest, largest) with 0 <= scale and 0 < ratio")
    # Decimal's logarithm is correctly rounded: the recipe's fingerprint is the same on every machine.
    return Column(float(low), float(high)), Column(float(Decimal(narrow).ln()), float(Decimal(wide).ln()), exp=True)


def random_crop(builder: Builder, transform: Any, library: str) -> str:
    height, width = checked_size(builder, transform.size)
    given = transform.padding or None
    if library != "v1" and given:
        left, right, top, bottom = given  # the order of the attribute in v2 and headrace
        given = left, top, right, bottom
    padding, color, mode = _padding_and_fill(builder, given, transform, library)
    needed = bool(transform.pad_if_needed)
    if library == "v1" and any(padding) and needed and mode in ("reflect", "symmetric"):
        builder.refuse("torchvision v1 pads a small image twice, mirroring the padding; use v2.RandomCrop")
    draw = builder.draw(Column(), Column())
    return builder.add(S.RandomCrop(height, width, padding, needed, color, mode, draw))


def pad(builder: Builder, transform: Any, library: str) -> str:
    return builder.add(S.Pad(*_padding_and_fill(builder, transform.padding, transform, library)))


def _padding_and_fill(
    builder: Builder, given: int | Sequence[int] | None, transform: Any, library: str
) -> tuple[tuple[int, int, int, int], tuple[int, int, int], str]:
    """Returns the padding (left, top, right, bottom), the colour of the fill, and the mode."""
    padding = functional_pil.four_paddings(given)
    if min(padding) < 0:
        builder.refuse("a negative padding crops; use CenterCrop or leave it out")
    if transform.padding_mode not in functional_pil.PADDING_MODES:
        builder.refuse("padding_mode must be constant, edge, reflect or symmetric")
    fill = transform.fill if library == "v1" else transform._fill.get(Image.Image, transform._fill.get("others"))
    color = functional_pil.fill_color(fill, builder.channels)
    if builder.values is not None:
        if transform.padding_mode not in ("constant", "edge"):
            builder.refuse("mirrors a tensor's border, which torch rejects for a small image")
        if transform._fill.keys() != {"others"} or (fill is not None and list(color) != _fill_as_three(fill)):
            builder.refuse("fill depends on the class or is not of bytes, which torch treats differently on a tensor")
    return padding, color, transform.padding_mode


def grayscale(builder: Builder, transform: Any, library: str) -> str:
    channels = transform.num_output_channels
    if channels not in (1, 3):
        builder.refuse(f"num_output_channels must be 1 or 3, got {channels}")
    builder.channels = channels
    return builder.add(S.Grayscale(channels))


def rgb(builder: Builder, transform: object, library: str) -> str:
    if builder.channels == 3:
        return "nothing: images are RGB already"
    builder.channels = 3
    return builder.add(S.Grayscale(3))


def image_filter(builder: Builder, transform: Any, library: str, narrowest: int = 1) -> str:
    """Returns the recipe's filter name for a resize by torchvision; `narrowest`: the smallest width that it makes."""
    name = filter_name(transform.interpolation)
    if builder.values is not None:
        if not transform.antialias:
            builder.refuse("resizes a tensor in a way that has no native twin; use antialias=True")
        return tensor_filter(builder, name, version=1 if library == "v1" else 2, narrowest=narrowest)
    if transform.antialias is False:
        messages.warn("Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.")
    return name


def tensor_filter(builder: Builder, mode: str, version: int, narrowest: int) -> str:
    """Returns the recipe's filter name for an antialiased resize of a uint8 tensor by a version of torchvision.

    Args:
        narrowest: the smallest width that it makes.

    Raises:
        LoweringError: there is no native twin, or torch has another arithmetic on this processor.
    """
    if f"tensor_{mode}" not in S.TENSOR_FILTERS:
        builder.refuse("resizes a tensor in a way that has no native twin; use bilinear or bicubic")
    in_bytes = version == 2 and torch_resize_blur.resizes_bytes(mode)
    if narrowest < 2 and not (in_bytes and torch_resize_blur.has_kernel_for_bytes()):
        builder.refuse("may resize a tensor to a width of 1, where torch's kernel repeats the first row")
    kind = tensor_rule.kind_of_resize(mode, in_bytes)
    if kind is None:
        builder.refuse("resizes a tensor by another arithmetic than the native code's on this processor")
    return f"{kind}_{mode}"


def add_one_of(builder: Builder, steps: Sequence[S.Step]) -> str:
    """Appends a choice of one of the steps, all equally likely; returns the line of `explain`."""
    if len(steps) == 1:
        return builder.add(steps[0])
    bounds = tuple((i + 1) / len(steps) for i in range(len(steps)))
    return builder.add(S.OneOf(tuple((step,) for step in steps), bounds, builder.draw(Column())))


def checked_size(builder: Builder, size: Iterable[SupportsIndex]) -> tuple[int, int]:
    """Returns a size as (height, width); refuses numbers that are not positive."""
    height, width = _checked_positive(builder, list(size))
    return height, width


def _checked_positive(builder: Builder, numbers: Sequence[SupportsIndex]) -> list[int]:
    values = [operator.index(number) for number in numbers]
    if min(values) < 1:
        builder.refuse("sizes must be positive numbers of pixels")
    return values


def _fill_as_three(fill: object) -> list[object]:
    values = list(fill) if isinstance(fill, Sequence) else [fill]
    return values if len(values) == 3 else values * 3


LOWERS: dict[str, Lower] = {
    "RandomHorizontalFlip": flip_horizontal,
    "RandomVerticalFlip": flip_vertical,
    "Resize": refuse_tensors(resize),
    "CenterCrop": refuse_tensors(center_crop),
    "RandomResizedCrop": refuse_tensors(random_resized_crop),
    "ResizedCenterCrop": refuse_tensors(resized_center_crop),
    "Pad": refuse_tensors(pad),
    "RandomCrop": refuse_tensors(random_crop),
    "Grayscale": refuse_tensors(grayscale),
    "RGB": refuse_tensors(rgb),
}
