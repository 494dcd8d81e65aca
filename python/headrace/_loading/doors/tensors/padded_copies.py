"""`torch.nn.functional.pad` of deferred tensors with a constant: a copy with other values around it.

It fills up the patches of an image to a fixed number of them, for example.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch

from headrace._loading.doors.tensors.arrangements import (
    Copy,
    Padding,
    View,
    copy_in,
    geometry_in,
    is_dense,
    stand_in,
)
from headrace._loading.doors.tensors.deferred_tensor import (
    DeferredTensor,
    defer,
    handlers,
    is_deferring_possible,
    recorded_in,
)
from headrace._loading.doors.tensors.geometries import Geometry, find_outcome, geometry_of
from headrace._loading.doors.tensors.recording import Recorded, Recording


def _pad(func: Any, args: Any, kwargs: Any) -> Any:
    recorded = recorded_in(args[0]) if args else None
    if recorded is None or type(args[0]) is not DeferredTensor or not is_deferring_possible():
        return NotImplemented
    made = _record(func, recorded, *args[1:], **kwargs)
    return NotImplemented if made is None else defer(made)


def _record(
    func: Any, recorded: Recorded, pad: Any = None, mode: Any = "constant", value: Any = None
) -> Recorded | None:
    """Returns what the result stands for; None if it is left to the function."""
    sides, fill = _whole_numbers(pad), _value_of(value, recorded.dtype)
    if mode != "constant" or not sides or fill is None:
        return None
    source = copy_in(recorded)
    if isinstance(source, View) and isinstance(source.of, Recording):
        content, geometry = source.of.content, source.geometry
    elif isinstance(source, Recording):
        content, geometry = source.content, geometry_in(source)
    elif isinstance(source, Copy) and source.padding is None:
        content, geometry = source.content, source.geometry
    else:
        return None
    if not is_dense(source.of if isinstance(source, View) else source):
        return None
    key = geometry_in(recorded), recorded.dtype
    made = find_outcome(func, lambda: stand_in(recorded), key, (sides, mode, 0), {})
    inner = None if made is None or not made.is_contiguous else _place_of(made.geometry.shape, sides, geometry.shape)
    return None if made is None or inner is None else Copy(content, geometry, made.geometry.shape, Padding(inner, fill))


@functools.lru_cache(maxsize=256)
def _place_of(shape: tuple[int, ...], sides: tuple[int, ...], inner_shape: tuple[int, ...]) -> Geometry | None:
    """Returns where the elements inside the padding are in a contiguous tensor, as a view of `inner_shape`; None if
    they are no such view."""
    inner = torch.empty(shape, device="meta")
    for number, (before, after) in enumerate(zip(sides[::2], sides[1::2], strict=True)):
        dim = len(shape) - 1 - number
        inner = inner.narrow(dim, before, shape[dim] - before - after)
    try:
        return geometry_of(inner.view(inner_shape))
    except RuntimeError:
        return None


def _whole_numbers(pad: Any) -> tuple[int, ...]:
    """Returns the numbers of elements at each side, the last dimension's first; none where that is not what they
    are."""
    if not isinstance(pad, (list, tuple)) or len(pad) % 2 or not all(type(one) is int and one >= 0 for one in pad):
        return ()
    return tuple(pad)


def _value_of(value: Any, dtype: torch.dtype) -> float | None:
    """Returns the value as a number that the type has, or is rounded to; None if it is anything else."""
    if value is None:
        return 0
    if type(value) not in (int, float) or not math.isfinite(value):
        return None
    if dtype == torch.uint8:
        return value if type(value) is int and 0 <= value <= 255 else None
    return value if dtype == torch.float32 and abs(value) < 1e30 else None


handlers[torch.nn.functional.pad] = _pad
