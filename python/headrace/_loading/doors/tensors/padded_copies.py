"""Pads of deferred tensors: torchvision's, and `torch.nn.functional.pad` with a constant, a copy with other values
around it, which fills up the patches of an image to a fixed number of them, for example.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch

from headrace._base.types import Function
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
    recording_of,
)
from headrace._loading.doors.tensors.geometries import Geometry, find_outcome, geometry_of
from headrace._loading.doors.tensors.recorded_functions import record_pixels
from headrace._loading.doors.tensors.recording import Recorded, Recording
from headrace.pillow.recording.lazy_core import Operation

_PADDING = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3}


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


def record_pad(plain: Function, tensor: Any, padding: Any, fill: Any, padding_mode: Any) -> torch.Tensor | None:
    """A recorder of v2's `pad` of bytes, as `image_functions` has them."""
    recording = recording_of(tensor)
    assert recording is not None
    state = recording.state
    if (
        not isinstance(padding_mode, str)
        or padding_mode not in _PADDING
        or state.steps
        or state.dtype != torch.uint8
        or (state.lead and state.frames is None)
    ):
        return None
    values = [padding] if type(padding) is int else list(padding) if isinstance(padding, (list, tuple)) else []
    if len(values) not in (1, 2, 4) or not all(type(one) is int and one >= 0 for one in values):
        return None
    left, top, right, bottom = values * (4 // len(values))
    height, width = state.height, state.width
    if padding_mode != "constant" and (max(left, right) >= width or max(top, bottom) >= height):
        return None
    bytes_ = _bytes_of_fill(fill, state.channels)
    if bytes_ is None or (padding_mode != "constant" and fill not in (0, None)):
        return None

    def replay(image: torch.Tensor, padding: Any = padding) -> torch.Tensor:
        made: torch.Tensor = plain(image, padding, fill, padding_mode)
        return made

    sides = [int(side > 0) for side in (left, top, right, bottom)]
    size = top + height + bottom, left + width + right
    operation: Operation = ("pad", (left, top, right, bottom), _PADDING[padding_mode], bytes_)
    key = ("pad", plain, padding_mode, *sides, isinstance(fill, (list, tuple)))
    return record_pixels(tensor, key, (operation,), size, replay, lambda image: replay(image, sides))


def record_pad_of_v1(plain: Function, tensor: Any, padding: Any, fill: Any, padding_mode: Any) -> torch.Tensor | None:
    """The same of v1's."""
    return None if isinstance(fill, (list, tuple)) else record_pad(plain, tensor, padding, fill, padding_mode)


def _bytes_of_fill(fill: Any, channels: int) -> tuple[int, int, int] | None:
    """Returns the bytes of the colour; None if a tensor of bytes has no such numbers."""
    values = list(fill) if isinstance(fill, (list, tuple)) else [0 if fill is None else fill]
    if len(values) not in (1, channels) or not all(
        type(one) in (int, float) and 0 <= one <= 255 and one == int(one) for one in values
    ):
        return None
    whole = [int(one) for one in values]
    return tuple(whole * (3 // len(whole)))  # type: ignore[return-value]


handlers[torch.nn.functional.pad] = _pad
