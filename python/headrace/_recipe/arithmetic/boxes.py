"""Boxes, paddings and sizes of the geometric steps, by torchvision's algorithms; no access to pixels.

This is the only Python code that computes crop boxes. The oracle passes it a sample's draws, the transforms pass it
numbers from torch's generator, so both crop alike. Source: torchvision 0.28, ``make_params`` of v2.RandomResizedCrop,
v2.RandomCrop and v2.RandomErasing; ``center_crop`` and ``_compute_resized_output_size`` of its functional modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

#: Picks one of n positions: ``0 <= draw(n) < n``.
PositionDraw = Callable[[int], int]


class Box(NamedTuple):
    """Rows ``[top, top + height)``, columns ``[left, left + width)``, in pixels."""

    top: int
    left: int
    height: int
    width: int


class Padding(NamedTuple):
    """Number of pixels added at each border."""

    left: int
    top: int
    right: int
    bottom: int


def position_from(uniform: float) -> PositionDraw:
    """Returns the PositionDraw that maps n to ``floor(u n)`` for a uniform u in [0, 1); below n for every 53-bit u."""
    return lambda n: int(uniform * n)


def random_resized_crop(
    height: int,
    width: int,
    ratio: tuple[float, float],
    tries: Iterable[tuple[float, float]],
    position_top: PositionDraw,
    position_left: PositionDraw,
) -> Box:
    """Returns the box of RandomResizedCrop.

    Args:
        height, width: size of the image in pixels.
        ratio: (smallest, largest) width / height, for the fall-back.
        tries: pairs (fraction of the area, width / height), taken until a box fits; ten in torchvision.
        position_top, position_left: called once each, for the try that fits.
    """
    area = height * width
    for fraction, aspect in tries:
        target_area = area * fraction
        w = round(math.sqrt(target_area * aspect))
        h = round(math.sqrt(target_area / aspect))
        if 0 < w <= width and 0 < h <= height:
            top = position_top(height - h + 1)
            return Box(top, position_left(width - w + 1), h, w)
    in_ratio = width / height
    w, h = width, height
    if in_ratio < min(ratio):
        h = round(w / min(ratio))
    elif in_ratio > max(ratio):
        w = round(h * max(ratio))
    return Box((height - h) // 2, (width - w) // 2, h, w)


def random_erase(
    height: int,
    width: int,
    tries: Iterable[tuple[float, float]],
    position_top: PositionDraw,
    position_left: PositionDraw,
    count: int = 1,
) -> Box | None:
    """Returns the box that RandomErasing erases, which may be empty; None if no try fits.

    Args:
        height, width: size of the tensor in pixels.
        tries: pairs (fraction of the area, height / width), taken until a box is smaller than the tensor along both
            edges.
        position_top, position_left: called once each, for the try that fits.
        count: number of boxes that share the area.
    """
    area = height * width
    for fraction, aspect in tries:
        erased_area = area * fraction / count
        h = round(math.sqrt(erased_area * aspect))
        w = round(math.sqrt(erased_area / aspect))
        if h < height and w < width:
            top = position_top(height - h + 1)
            return Box(top, position_left(width - w + 1), h, w)
    return None


def resize_by_edge(height: int, width: int, size: int | None, max_size: int | None) -> tuple[int, int]:
    """Returns (height, width) after a resize that keeps the ratio.

    Args:
        height, width: size of the image in pixels.
        size: new length of the shorter edge. None: the longer edge becomes `max_size`.
        max_size: largest length of the longer edge; None: no limit.

    Raises:
        ValueError: `max_size` does not exceed `size`, or both are None.
    """
    short, long = min(height, width), max(height, width)
    if size is None:
        if max_size is None:
            raise ValueError(f"max_size must be an integer when size is None, but got {max_size} instead.")
        new_short, new_long = int(max_size * short / long), max_size
    else:
        new_short, new_long = size, int(size * long / short)
        if max_size is not None:
            if max_size <= size:
                raise ValueError(
                    f"max_size = {max_size} must be strictly greater than the requested "
                    f"size for the smaller edge size = {[size]}"
                )
            if new_long > max_size:
                new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if width <= height else (new_short, new_long)


def resize_keep_ratio(height: int, width: int, target: tuple[int, int], longest: float) -> tuple[int, int]:
    """Returns (height, width) after timm's ResizeKeepRatio without its random factors.

    Args:
        height, width: size of the image in pixels.
        target: (height, width) that the image must fill, or fit in.
        longest: share of the edge that is longer in terms of the target: 1 to fit in it, 0 to fill it.
    """
    ratios = height / target[0], width / target[1]
    ratio = max(ratios) * longest + min(ratios) * (1.0 - longest)
    return round(height / ratio), round(width / ratio)


def center_crop(
    height: int, width: int, crop_height: int, crop_width: int, rounding: str = "even"
) -> tuple[Padding, Box]:
    """Returns the padding that a smaller image gets first, and the central box of the padded image.

    Args:
        height, width: size of the image in pixels.
        crop_height, crop_width: size of the crop.
        rounding: "even", "towards_zero" or "down", see `steps.CenterCrop`.
    """
    missing_h, missing_w = max(crop_height - height, 0), max(crop_width - width, 0)
    padding = Padding(missing_w // 2, missing_h // 2, (missing_w + 1) // 2, (missing_h + 1) // 2)
    if rounding == "down":
        padding = Padding(padding.right, padding.bottom, padding.left, padding.top)
    more_h, more_w = height + missing_h - crop_height, width + missing_w - crop_width
    if rounding == "even":
        return padding, Box(round(more_h / 2.0), round(more_w / 2.0), crop_height, crop_width)
    return padding, Box(more_h // 2, more_w // 2, crop_height, crop_width)


def corner(height: int, width: int, crop_height: int, crop_width: int, bottom: bool, right: bool) -> Box:
    """Returns the box in a corner of an image (height, width).

    Raises:
        ValueError: the image is smaller than the crop.
    """
    if crop_width > width or crop_height > height:
        size = crop_height, crop_width
        raise ValueError(f"Requested crop size {size} is bigger than input size {(height, width)}")
    top, left = (height - crop_height) if bottom else 0, (width - crop_width) if right else 0
    return Box(top, left, crop_height, crop_width)


def random_crop(
    height: int,
    width: int,
    crop_height: int,
    crop_width: int,
    padding: tuple[int, int, int, int],
    pad_if_needed: bool,
    position_top: PositionDraw,
    position_left: PositionDraw,
) -> tuple[Padding, Box]:
    """Returns the total padding of RandomCrop, and its box in the padded image.

    Args:
        height, width: size of the image in pixels.
        crop_height, crop_width: size of the crop.
        padding: (left, top, right, bottom), negative to crop.
        pad_if_needed: whether to pad an image that is still too small.
        position_top, position_left: called only if there is more than one position along that edge, as in torchvision
            v2.

    Raises:
        ValueError: the padded image is smaller than the crop.
    """
    left, top, right, bottom = padding
    if pad_if_needed:  # by all missing pixels on both sides, so that the image can be at every offset in the crop
        missing_h = max(crop_height - (height + top + bottom), 0)
        missing_w = max(crop_width - (width + left + right), 0)
        left, top, right, bottom = left + missing_w, top + missing_h, right + missing_w, bottom + missing_h
    padded_height, padded_width = height + top + bottom, width + left + right
    if padded_height < crop_height or padded_width < crop_width:
        raise ValueError(
            f"Required crop size {(crop_height, crop_width)} is larger than "
            f"{'padded ' if any(padding) else ''}input image size {(padded_height, padded_width)}."
        )
    crop_top = position_top(padded_height - crop_height + 1) if padded_height > crop_height else 0
    crop_left = position_left(padded_width - crop_width + 1) if padded_width > crop_width else 0
    return Padding(left, top, right, bottom), Box(crop_top, crop_left, crop_height, crop_width)
