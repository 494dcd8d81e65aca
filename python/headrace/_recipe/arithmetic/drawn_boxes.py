"""Sizes, paddings and boxes of the steps that choose the size of their output; no access to pixels.

As `boxes`, it serves the oracle, with a sample's draws, and the transforms, with numbers from torch's generator. From
torchvision 0.28, ``make_params`` of v2.RandomShortestSize, v2.ScaleJitter and v2.RandomZoomOut; timm 1.0,
``get_params`` of RandomPad, RandomCropOrPad and ResizeKeepRatio.
"""

from __future__ import annotations

import math

import torch

from headrace._recipe.arithmetic.boxes import Box, Padding, PositionDraw

#: (height, width) in pixels.
Size = tuple[int, int]
#: A number, or torchvision's float32 tensor of one element, in whose arithmetic the result is rounded.
Factor = float | torch.Tensor


def scaled_shorter(height: int, width: int, size: int, max_size: int | None) -> Size:
    """Returns (height, width) times ``size / min(height, width)``, or less: the longer edge is at most `max_size`."""
    factor = size / min(height, width)
    if max_size is not None:
        factor = min(factor, max_size / max(height, width))
    return int(height * factor), int(width * factor)


def scaled_edge(height: int, width: int, size: int, *, of_longer: bool) -> Size:
    """Returns (height, width) times `size` over the shorter or the longer edge, rounded as albumentations does."""
    factor = size / (max if of_longer else min)(height, width)
    return max(1, round(height * factor)), max(1, round(width * factor))


def jitter_size(height: int, width: int, target: Size, scale: Factor) -> Size:
    """Returns (height, width) of the largest image of this ratio in `target`, (height, width), times `scale`."""
    factor = min(target[0] / height, target[1] / width) * scale
    return int(height * factor), int(width * factor)


def zoomed_out(height: int, width: int, factor: Factor, left: Factor, top: Factor) -> Padding:
    """Returns the padding that makes an image `factor` times as large.

    Args:
        height, width: size of the image in pixels.
        factor: of both edges, 1 or more.
        left, top: shares of the padding on these sides, in [0, 1).
    """
    more_rows, more_columns = int(height * factor) - height, int(width * factor) - width
    at_left, at_top = int(more_columns * left), int(more_rows * top)
    return Padding(at_left, at_top, more_columns - at_left, more_rows - at_top)


def random_padding(
    height: int, width: int, target: Size, position_left: PositionDraw, position_top: PositionDraw
) -> Padding:
    """Returns the padding to at least `target`, (height, width), that leaves the image at a random place."""
    more_rows, more_columns = max(target[0] - height, 0), max(target[1] - width, 0)
    left = position_left(more_columns + 1)
    top = position_top(more_rows + 1)
    return Padding(left, top, more_columns - left, more_rows - top)


def random_window(
    height: int, width: int, target: Size, position_top: PositionDraw, position_left: PositionDraw
) -> tuple[Padding, Box]:
    """Returns the padding that an image gets first, and a random box of size `target` of the padded image."""
    top, box_top, bottom = _fit_edge(height, target[0], position_top)
    left, box_left, right = _fit_edge(width, target[1], position_left)
    return Padding(left, top, right, bottom), Box(box_top, box_left, *target)


def _fit_edge(edge: int, wanted: int, draw: PositionDraw) -> tuple[int, int, int]:
    """Returns the padding before an edge, the first pixel of the box, and the padding after the edge."""
    at = draw(abs(edge - wanted) + 1)
    return (0, at, 0) if edge >= wanted else (at, 0, wanted - edge - at)


def random_keep_ratio(height: int, width: int, target: Size, longest: float, scale: float, aspect: float) -> Size:
    """Returns (height, width) after timm's ResizeKeepRatio.

    Args:
        height, width, target, longest: as for `boxes.resize_keep_ratio`.
        scale: factor of both edges.
        aspect: factor of width over height.
    """
    ratios = height / target[0], width / target[1]
    ratio = max(ratios) * longest + min(ratios) * (1.0 - longest)
    root = math.sqrt(aspect)
    return round(height * (scale / root) / ratio), round(width * (scale * root) / ratio)
