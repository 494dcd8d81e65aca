"""What a list or array of a dataset held when a source was made of it, compared with what it holds now."""

from __future__ import annotations

import array
from collections.abc import Sequence
from operator import is_, itemgetter
from pathlib import PurePath
from typing import Any

import numpy as np
import torch

from headrace._base.types import Array

_ALL_LOOKED_AT = 100_000  # the longest list all of whose values' identity is looked at
_LOOKED_AT = 10_000  # of a longer list, evenly spaced
_PLAIN = (int, str, bytes, type(None), PurePath, np.integer, np.bool_)


class Held:
    """A list, tuple, range, array or tensor as it was.

    A comparison of lists costs a few milliseconds for a million values: it compares the identity of the values first.
    Values that can change in place, such as tensors in a list, are shared with the list.

    Args:
        value: the object.
        of_pairs: whether it is a list of pairs, which may be lists that change in place.

    Attributes:
        then: its values, in a copy.
    """

    def __init__(self, value: Any, *, of_pairs: bool = False) -> None:
        self._kind = type(value)
        self._loose = of_pairs and set(map(type, value)) - {tuple} != set()
        self.then: Any = self._copy_value(value)

    def _copy_value(self, value: Any) -> object:
        return list(map(tuple, value)) if self._loose else copy_value(value)

    def is_held(self, now: object) -> bool:
        """Returns whether an object holds the same values; False where they cannot be compared."""
        if type(now) is not self._kind:
            return False
        if not isinstance(now, (list, tuple)):
            return same(self.then, now)
        try:
            values = list(map(tuple, now)) if self._loose else now
            if self.then != values:
                return False
        except Exception:  # values that cannot be compared, or a pair that is none
            return False
        every = slice(None, None, 1 if len(values) <= _ALL_LOOKED_AT else len(values) // _LOOKED_AT)
        before, after = self.then[every], values[every]
        if not all(map(is_, before, after)):
            if not all(map(_are_identical_values, before, after)):
                return False
            self.then = self._copy_value(now)  # of a copy of the loader: from now on the values are the same objects
        return True

    def rows_are_held(self, now: Any, rows: Sequence[int]) -> bool:
        """Returns whether an object holds the same values at some places; False may be wrong."""
        if type(now) is not self._kind:
            return False
        try:
            if isinstance(now, (np.ndarray, torch.Tensor)):
                return same(self.then[rows], now[rows])
            if isinstance(now, range):
                return bool(now == self.then)
            look_up = itemgetter(*rows, rows[0])  # two values at least: a tuple
            if self._loose:
                return bool(look_up(self.then) == tuple(map(tuple, look_up(now))))
            return all(map(is_, look_up(self.then), look_up(now)))
        except Exception:
            return False


def copy_value(value: object) -> object:
    """Returns a copy of a list, array or tensor; other objects themselves. Values inside a list are not copied."""
    if isinstance(value, (list, array.array)):
        return value[:]
    if isinstance(value, np.ndarray):
        return np.array(value, order="K")
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def same(then: Any, now: object) -> bool:
    """Returns whether two lists, arrays or tensors have equal values; False where they cannot be compared."""
    try:
        if isinstance(now, np.ndarray):
            if type(then) is not type(now) or then.dtype != now.dtype or then.shape != now.shape:
                return False
            if now.dtype.hasobject:
                return all(map(_are_identical_values, then.reshape(-1).tolist(), now.reshape(-1).tolist()))
            return bool(np.array_equal(then, now)) if now.dtype.kind in "biu" else _bytes_of(then) == _bytes_of(now)
        if isinstance(now, torch.Tensor):
            alike = then.dtype == now.dtype and then.shape == now.shape
            return alike and (_bytes_of(then) == _bytes_of(now) if now.is_floating_point() else torch.equal(then, now))
        return bool(then == now)
    except Exception:
        return False


def address_of(array: object) -> tuple[object, ...]:
    """Returns what decides where the values of an array or tensor are in memory; () for any other object."""
    if isinstance(array, np.ndarray):
        return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
    if isinstance(array, torch.Tensor) and array.layout == torch.strided and array.device.type == "cpu":
        return array.data_ptr(), tuple(array.shape), array.stride(), array.dtype
    return ()


def _are_identical_values(before: object, after: Any) -> bool:
    """Whether two equal values are known to be the same: 1, True and 1.0 are equal, and so are 0.0 and -0.0."""
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, tuple):
        return all(map(_are_identical_values, before, after))
    return isinstance(before, _PLAIN) or (type(before) is float and before.hex() == after.hex())


def _bytes_of(array: Array | torch.Tensor) -> bytes:
    if isinstance(array, torch.Tensor):
        array = array.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return array.tobytes()
