"""Where the values of an Arrow array of bytes are stored in its buffers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

_VIEW = np.dtype([("size", "<i4"), ("prefix", "<i4"), ("buffer", "<i4"), ("begin", "<i4")])
_INLINE = 12  # bytes of a value that its view holds itself


class BinaryValues(NamedTuple):
    """The values of one array: value i is `sizes[i]` bytes of ``buffers[which[i]]`` from `begins[i]` on.

    Attributes:
        which: int64 (n,); -1: null.
        begins, sizes: int64 (n,); 0 where the value is null.
        buffers: Arrow's buffers.
    """

    which: Int64s
    begins: Int64s
    sizes: Int64s
    buffers: list[Any]


def values_of(array: Any) -> BinaryValues:
    """Returns the places of the values of a ``pyarrow.Array`` of type binary, large_binary or binary_view."""
    import pyarrow.types as types

    count = len(array)
    if count == 0 or array.null_count == count:
        nothing = np.zeros(count, np.int64)
        return BinaryValues(nothing - 1, nothing, nothing, [])
    found = _slices_from_views(array) if types.is_binary_view(array.type) else _slices_from_offsets(array)
    if array.null_count > 0:
        null = array.is_null().to_numpy(zero_copy_only=False)
        for values, value in zip(found[:3], (-1, 0, 0), strict=True):
            values[null] = value
    return found


def _slices_from_offsets(array: Any) -> BinaryValues:
    import pyarrow.types as types

    _, offsets, data = array.buffers()
    kind = np.int64 if types.is_large_binary(array.type) else np.int32
    ends = np.frombuffer(offsets, kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return BinaryValues(np.zeros(len(array), np.int64), ends[:-1].copy(), np.diff(ends), [data])


def _slices_from_views(array: Any) -> BinaryValues:
    _, buffer, *data = array.buffers()
    views = np.frombuffer(buffer, _VIEW)[array.offset : array.offset + len(array)]
    inline = views["size"] <= _INLINE
    places = (array.offset + np.arange(len(array), dtype=np.int64)) * _VIEW.itemsize
    which = np.where(inline, 0, views["buffer"].astype(np.int64) + 1)
    begins = np.where(inline, places + 4, views["begin"].astype(np.int64))  # after the size
    return BinaryValues(which, begins, views["size"].astype(np.int64), [buffer, *data])
