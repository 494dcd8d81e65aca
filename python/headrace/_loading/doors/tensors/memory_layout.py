"""The order of an image tensor's values in memory, (C, H, W), and what torch's functions make of it.

A program sees the strides of a tensor. They depend on the function, the order of its input, and torch's version; so
each function is called once with a small tensor of the same order, and its result tells.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

import torch

from headrace._base.lifetimes.bounded_table import BoundedTable

#: Pixels along an edge of a deferred tensor: one would have any stride.
FEWEST = 2
_HEIGHT, _WIDTH = 7, 9  # of the small tensors: no edge has one pixel, which would have any stride
#: The dimensions before (C, H, W) of a small tensor, which has one image or two along each; 0 at the end: one, with the
#: stride that `unsqueeze` gives it.
Lead: TypeAlias = "tuple[int, ...]"
_probed: BoundedTable[Hashable, tuple[Layout, torch.dtype] | None] = BoundedTable(1024)


class Cut(NamedTuple):
    """Which edges of a tensor are shorter than those of the image in memory that it is a part of."""

    height: bool = False
    width: bool = False


class Layout(enum.Enum):
    """The order of a dense tensor's values; the values of the first two are the kernels' names.

    Attributes:
        EXPANDED: three channels that have the memory of one, as `Tensor.expand` makes them.
    """

    PLANAR = "planar"
    CHANNELS_LAST = "channels_last"
    EXPANDED = "expanded"

    def strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the strides of a dense tensor (..., C, H, W), in elements."""
        *lead, channels, height, width = shape
        if self is Layout.EXPANDED:
            own, image = (0, width, 1), height * width
        else:
            own = (height * width, width, 1) if self is Layout.PLANAR else (1, width * channels, channels)
            image = channels * height * width
        return (*(image * math.prod(lead[at + 1 :]) for at in range(len(lead))), *own)


def few_of(lead: tuple[int, ...], strides: tuple[int, ...], channels: int, layout: Layout) -> Lead:
    """Returns which small tensor stands for one with these dimensions before (C, H, W), and these strides."""
    few = tuple(min(one, 2) for one in lead)
    is_added = layout is not Layout.PLANAR and strides[len(lead) - 1] == channels * strides[-3]
    return (*few[:-1], 0) if few[-1:] == (1,) and is_added else few


def add_lead(images: torch.Tensor, lead: Lead) -> torch.Tensor:
    """Returns a tensor whose dimensions before (C, H, W) are those of the `Lead` without 0, with the strides of it."""
    return images[..., 0, :, :, :].unsqueeze(-4) if lead[-1:] == (0,) else images


def probe_layout(
    key: Hashable,
    function: Callable[[torch.Tensor], torch.Tensor],
    layout: Layout,
    channels: int,
    dtype: torch.dtype,
    cut: Cut,
    lead: Lead = (),
    made: int | None = None,
) -> tuple[Layout, torch.dtype] | None:
    """Returns the order and the type of a function's result.

    Args:
        key: equal for calls whose results have the same order.
        function: called with an image tensor of 7 x 9 pixels.
        layout, channels, dtype: of the function's input.
        cut: which edges of the input are shorter than those of the image in memory that it is a part of.
        lead: the dimensions before (C, H, W) that it has.
        made: channels of the result; None: as many as the input has.

    Returns:
        None if the result is no dense tensor of that many channels, or is the input itself.
    """
    whole = (key, layout, channels, dtype, cut, lead)
    return _probed.find_or_make(
        whole, lambda: _find_layout(function, layout, channels, dtype, cut, lead, made or channels)
    )


def _find_layout(
    function: Callable[[torch.Tensor], torch.Tensor],
    layout: Layout,
    channels: int,
    dtype: torch.dtype,
    cut: Cut,
    lead: Lead,
    made_channels: int,
) -> tuple[Layout, torch.dtype] | None:
    shape = *(one or 1 for one in lead), channels, _HEIGHT + 2 * cut.height, _WIDTH + 2 * cut.width
    given = torch.zeros(math.prod(shape), dtype=dtype).as_strided(shape, layout.strides(shape))
    try:
        image = given[..., cut.height : cut.height + _HEIGHT, cut.width : cut.width + _WIDTH] if any(cut) else given
        image = add_lead(image, lead)
        made = function(image)
    except Exception:  # raised again where the function is called with the tensor itself
        return None
    if (
        made is image
        or made.shape[:-2] != (*image.shape[:-3], made_channels)
        or made.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
    ):
        return None
    for one in Layout:
        if made.stride() == one.strides(made.shape):
            return one, made.dtype
    return None
