"""torchvision v2's operations on bounding boxes, for the boxes of many samples at once.

Each takes boxes (k, 4) of a dtype of `box_rule.DTYPES` and one number for each box where torchvision takes one for the
boxes of a sample. Source: torchvision 0.29, ``*_bounding_boxes`` in ``transforms/v2/functional``. Nothing is changed in
place.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import numpy.typing as npt
import torch

#: One number for each box, int64 (k,).
Numbers = npt.NDArray[np.int64]


def convert(boxes: torch.Tensor, old: str, new: str) -> torch.Tensor:
    """Returns boxes in another format, rounded as the installed torchvision does it."""
    if old == new:
        return boxes
    theirs = _conversion_of_other_versions() if "CXCYWH" in (old, new) else None
    return convert_as_now(boxes, old, new) if theirs is None else theirs(boxes, old, new)


@functools.cache
def _conversion_of_other_versions() -> Callable[[torch.Tensor, str, str], torch.Tensor] | None:
    """Returns the installed torchvision's function if it is older than 0.27, which rounds centres otherwise."""
    try:
        major, minor = (int(number) for number in version("torchvision").split(".")[:2])
        if (major, minor) >= (0, 27):
            return None
        functional = importlib.import_module("torchvision.transforms.v2.functional")
    except (PackageNotFoundError, ImportError, RuntimeError, ValueError):  # there is none, or it does not load
        return None
    found: Callable[[torch.Tensor, str, str], torch.Tensor] = functional.convert_bounding_box_format
    return found


def convert_as_now(boxes: torch.Tensor, old: str, new: str) -> torch.Tensor:
    """Returns boxes in another format, as torchvision 0.27 and newer convert them."""
    first, second = boxes[:, :2], boxes[:, 2:]
    whole = None if boxes.is_floating_point() else "floor"
    if old == "XYWH":
        if new == "XYXY":
            return torch.cat([first, second + first], 1)
        return torch.cat([first + second.div(2, rounding_mode=whole), second], 1)
    if old == "XYXY":
        extent = second - first
        if new == "XYWH":
            return torch.cat([first, extent], 1)
        return torch.cat([(first * 2 + extent).div(2, rounding_mode=whole), extent], 1)
    exact = boxes if whole is None else boxes.float()
    corner = exact[:, :2] - exact[:, 2:] / 2
    opposite = corner + exact[:, 2:]
    if new == "XYXY":
        return torch.cat([corner, opposite], 1).to(boxes.dtype)
    if whole is None:
        return torch.cat([corner, second], 1)
    corner, opposite = corner.to(boxes.dtype), opposite.to(boxes.dtype)
    return torch.cat([corner, opposite - corner], 1)


def clamp(boxes: torch.Tensor, format: str, heights: Numbers, widths: Numbers) -> torch.Tensor:
    """Returns boxes cut at the borders of images of these sizes."""
    exact = boxes if boxes.is_floating_point() else boxes.float()
    corners = convert(exact, format, "XYXY")
    limits = torch.from_numpy(np.stack([widths, heights, widths, heights], 1)).to(corners.dtype)
    # torchvision's bounds are numbers: the same kernel, which keeps -0.0 and NaN, then the upper bound of each box.
    clamped = torch.minimum(corners.clamp(min=0, max=math.inf), limits)
    return convert(clamped, "XYXY", format).to(boxes.dtype)


def shift(boxes: torch.Tensor, format: str, lefts: Numbers, tops: Numbers) -> torch.Tensor:
    """Returns boxes moved to the right and down by these numbers of pixels, as a pad does."""
    return boxes + _offsets(boxes, format, lefts, tops)


def crop(boxes: torch.Tensor, format: str, lefts: Numbers, tops: Numbers) -> torch.Tensor:
    """Returns boxes relative to these corners, not yet cut at the border."""
    return boxes - _offsets(boxes, format, lefts, tops)


def _offsets(boxes: torch.Tensor, format: str, lefts: Numbers, tops: Numbers) -> torch.Tensor:
    opposite = [lefts, tops] if format == "XYXY" else [np.zeros_like(lefts)] * 2
    return torch.from_numpy(np.stack([lefts, tops, *opposite], 1)).to(boxes.dtype)


def resize(boxes: torch.Tensor, old: tuple[Numbers, Numbers], new: tuple[Numbers, Numbers]) -> torch.Tensor:
    """Returns boxes of images that are resized; those of an image that keeps its size are not touched.

    Args:
        old, new: (heights, widths) in pixels.
    """
    rows, columns = new[0] / old[0], new[1] / old[1]
    # torchvision makes a tensor of Python's numbers.
    factors = torch.from_numpy(np.stack([columns, rows, columns, rows], 1)).to(torch.get_default_dtype())
    resized = boxes.mul(factors).to(boxes.dtype)
    kept = (old[0] == new[0]) & (old[1] == new[1])
    return torch.where(torch.from_numpy(kept)[:, None], boxes, resized) if kept.any() else resized


def flip(boxes: torch.Tensor, format: str, edges: Numbers, axis: int) -> torch.Tensor:
    """Returns boxes mirrored along an axis: 0 for x, 1 for y. `edges`: the image's length along it."""
    edge = torch.from_numpy(edges).to(boxes.dtype)
    flipped = boxes.clone()
    if format == "XYXY":
        flipped[:, axis] = (boxes[:, axis + 2] - edge).neg()
        flipped[:, axis + 2] = (boxes[:, axis] - edge).neg()
    else:
        at = boxes[:, axis] + boxes[:, axis + 2] if format == "XYWH" else boxes[:, axis]
        flipped[:, axis] = (at - edge).neg()
    return flipped


def find_valid(
    boxes: torch.Tensor, format: str, heights: Numbers, widths: Numbers, min_size: float, min_area: float
) -> torch.Tensor:
    """Returns which boxes SanitizeBoundingBoxes keeps, bool (k,)."""
    corners = convert(boxes, format, "XYXY")
    edges = torch.from_numpy(np.stack([widths, heights, widths, heights], 1))
    columns, rows = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    large = (columns >= min_size) & (rows >= min_size) & (columns * rows >= min_area)
    return large & (corners >= 0).all(dim=-1) & (corners <= edges).all(dim=-1)
