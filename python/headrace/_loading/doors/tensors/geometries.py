"""Where the elements of a view are in the memory of an image's tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from types import EllipsisType, NoneType
from typing import Any, NamedTuple

import torch

from headrace._base.lifetimes.bounded_table import BoundedTable

_MOST_OUTCOMES = 1024


class Geometry(NamedTuple):
    """Where the elements of a view are in the memory of its whole: as `torch.as_strided` has it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def view(self, whole: torch.Tensor) -> torch.Tensor:
        return whole.as_strided(self.shape, self.strides, whole.storage_offset() + self.offset)

    def by_pixel(self, channels: int, height: int, width: int) -> Geometry | None:
        """Returns where the same elements are if the channels of a pixel are next to each other in memory, instead of
        the pixels of a channel; None if that puts no elements of the view next to each other, or is not known."""
        return _by_pixel(self, channels, height, width)


@functools.lru_cache(maxsize=256)
def _by_pixel(geometry: Geometry, channels: int, height: int, width: int) -> Geometry | None:
    units = height * width, width, 1  # strides of a channel, a row, a column
    steps = 1, width * channels, channels  # the same where pixels are next to each other
    if geometry.strides[-1:] != (units[0],):
        return None
    begin = _split(geometry.offset, units)
    last, strides = list(begin), []
    for edge, stride in zip(geometry.shape, geometry.strides, strict=True):
        parts = _split(stride, units)
        strides.append(sum(part * step for part, step in zip(parts, steps, strict=True)))
        for axis, part in enumerate(parts):
            last[axis] += (edge - 1) * part
    # Within the image along every axis, so that a sum of strides means the same element in both orders.
    if not all(one < edge for one, edge in zip(last, (channels, height, width), strict=True)):
        return None
    return Geometry(geometry.shape, tuple(strides), sum(one * step for one, step in zip(begin, steps, strict=True)))


def _split(elements: int, units: tuple[int, int, int]) -> tuple[int, int, int]:
    channels, rest = divmod(elements, units[0])
    return channels, *divmod(rest, units[1])


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a contiguous tensor, as torch has them."""
    return torch.empty(shape, device="meta").stride()


def geometry_of(tensor: torch.Tensor) -> Geometry:
    """Returns where the elements of a tensor without memory are in its storage."""
    return Geometry(tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))


class Outcome(NamedTuple):
    """What a function makes of a tensor.

    Attributes:
        geometry: of its result, in the result's storage.
        is_view: whether that is the tensor's.
        is_same: whether it returns the tensor itself.
        is_contiguous: the result.
    """

    geometry: Geometry
    is_view: bool
    is_same: bool
    is_contiguous: bool


def find_outcome(
    func: Callable[..., Any], stand_in: Callable[[], torch.Tensor], key: Hashable, args: tuple[Any, ...], kwargs: Any
) -> Outcome | None:
    """Returns what a function makes of a tensor; None if it raises an error, or returns another type of elements, none,
    or no tensor.

    Args:
        stand_in: makes a tensor without memory, of the same shape and strides.
        key: equal for tensors of the same shape, strides, type and place in their storage.
        args, kwargs: the other arguments.
    """
    try:
        whole = func, key, _key_of(args), _key_of(tuple(kwargs.items()))
    except TypeError:
        return _call(func, stand_in(), args, kwargs)
    return _outcomes.find_or_make(whole, lambda: _call(func, stand_in(), args, kwargs))


_outcomes: BoundedTable[Hashable, Outcome | None] = BoundedTable(_MOST_OUTCOMES)


def _call(
    func: Callable[..., Any], given: torch.Tensor, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Outcome | None:
    try:
        made = func(given, *args, **kwargs)
    except Exception:  # raised again where the function is called with the tensor itself
        return None
    if type(made) is not torch.Tensor or made.numel() == 0 or (made.dtype, made.device) != (given.dtype, given.device):
        return None
    is_view = made.untyped_storage()._cdata == given.untyped_storage()._cdata
    return Outcome(geometry_of(made), is_view, made is given, made.is_contiguous())


def _key_of(value: Any) -> Hashable:
    """Returns a key for an argument; raises TypeError if it may mean something else later."""
    kind = type(value)
    if kind in (int, bool, str, NoneType, EllipsisType, torch.dtype, torch.memory_format):
        return kind, value
    if kind in (tuple, list, torch.Size):
        return kind, *map(_key_of, value)
    if kind is slice:
        return kind, _key_of(value.start), _key_of(value.stop), _key_of(value.step)
    raise TypeError
