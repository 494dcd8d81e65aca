"""Functions of torch that deferred tensors record, and those that ask for what is known without their values."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch

from headrace._doors.tensors.deferred_tensor import (
    Deferred,
    DeferredTensor,
    defer,
    handlers,
    is_deferring_possible,
    recording_of,
)
from headrace._doors.tensors.memory_layout import probe_layout
from headrace._doors.tensors.recording import Recording, State, ValueStep
from headrace.pillow.lazy_core import MOST_PIXELS, Operation

_FEWEST = 2  # pixels along an edge: one has any stride
_NUMPYS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float16, torch.float32)  # in at most 4 bytes
Replay = Callable[[torch.Tensor], torch.Tensor]


def record_pixels(
    tensor: torch.Tensor,
    key: Hashable,
    operations: tuple[Operation, ...],
    size: tuple[int, int],
    replay: Replay,
    of_small: Replay | None = None,
) -> torch.Tensor | None:
    """Records a function that makes new memory for other pixels; returns None if it cannot be recorded.

    Args:
        tensor: deferred.
        key: equal for calls whose results have the same order in memory.
        operations: what the function does, natively.
        size: (height, width) of its result.
        replay: the function.
        of_small: the same for a tensor of few pixels, if it is another one.
    """
    recording = recording_of(tensor)
    if recording is None or not _is_size_recordable(size) or not is_deferring_possible():
        return None
    state = recording.state
    found = probe_layout(key, of_small or replay, state.layout, state.channels, state.dtype, recording.cut)
    if found is None or found[1] != state.dtype:
        return None
    after = State(state.channels, *size, found[0], state.dtype, (*state.operations, *operations), state.steps)
    return defer(Recording(recording.origin, after, recording, replay))


def record_values(tensor: torch.Tensor, step: ValueStep) -> torch.Tensor | None:
    """Records a function that maps each value alike; returns None if it cannot be recorded."""
    recording = recording_of(tensor)
    if recording is None or not is_deferring_possible():
        return None
    state = recording.state
    key = (torch.get_default_dtype(), step.key)
    found = probe_layout(key, step.call, state.layout, state.channels, state.dtype, recording.cut)
    if found is None or found[1] not in _NUMPYS:
        return None
    after = State(*state.shape, *found, state.operations, (*state.steps, step))
    return defer(Recording(recording.origin, after, recording, step.call))


def record_part(tensor: torch.Tensor, box: tuple[int, int, int, int]) -> torch.Tensor | None:
    """Records a view of a part: (top, bottom, left, right); returns None if it cannot be recorded."""
    recording = recording_of(tensor)
    top, bottom, left, right = box
    height, width = bottom - top, right - left
    if recording is None or not _is_size_recordable((height, width)) or not is_deferring_possible():
        return None
    crop: Operation = ("crop", (left, top, right, bottom))
    state = recording.state
    after = State(state.channels, height, width, state.layout, state.dtype, (*state.operations, crop), state.steps)
    return defer(Recording(recording.origin, after, recording, None, box))


def _is_size_recordable(size: tuple[int, int]) -> bool:
    return min(size) >= _FEWEST and size[0] * size[1] <= MOST_PIXELS


def _ask_wrapper(func: Any, args: Any, kwargs: Any) -> Any:
    """What the tensor without memory knows itself."""
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _get_part(func: Any, args: Any, kwargs: Any) -> Any:
    tensor, key = args
    state = recording_of(tensor)
    if state is None or type(tensor) is not DeferredTensor:
        return NotImplemented
    box = _box_of(key, tuple(tensor.shape))
    made = None if box is None else record_part(tensor, box)
    return NotImplemented if made is None else made


def _box_of(key: Any, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Returns (top, bottom, left, right) of an index of slices; None for others, and if it divides the channels."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if not all(one is Ellipsis or (type(one) is slice and one.step in (None, 1)) for one in keys):
        return None
    if keys.count(Ellipsis) > 1:
        return None
    at = keys.index(Ellipsis) if Ellipsis in keys else len(keys)
    left = len(keys) - (Ellipsis in keys)
    if left > len(shape):
        return None
    keys[at : at + 1] = [slice(None)] * (len(shape) - left)
    if not all(type(edge) is int or edge is None for one in keys for edge in (one.start, one.stop)):
        return None
    (first, last, _), (top, bottom, _), (begin, end, _) = (
        one.indices(edge) for one, edge in zip(keys, shape, strict=True)
    )
    return (top, bottom, begin, end) if (first, last) == (0, shape[0]) else None


def _flip(func: Any, args: Any, kwargs: Any) -> Any:
    tensor, *dims = args
    if kwargs.keys() - {"dims"} or type(tensor) is not DeferredTensor:
        return NotImplemented
    dims = kwargs.get("dims", dims)
    dims = [dims] if type(dims) is int else list(dims)
    dims = list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims
    if len(dims) != 1 or type(dims[0]) is not int or dims[0] % 3 == 0 or not -3 <= dims[0] < 3:
        return NotImplemented
    axis = dims[0] % 3 - 3
    made = record_pixels(
        tensor,
        ("flip", axis),
        (("transpose", 0 if axis == -1 else 1),),
        (tensor.shape[1], tensor.shape[2]),
        lambda t: t.flip(axis),
    )
    return NotImplemented if made is None else made


def _as_tensor(func: Any, args: Any, kwargs: Any) -> Any:
    """torch.as_tensor returns a tensor as it is, unless it has another type or device."""
    if len(args) != 1 or type(args[0]) is not DeferredTensor:
        return NotImplemented
    others = {name: value for name, value in kwargs.items() if value is not None}
    if others.keys() - {"dtype"} or others.get("dtype", args[0].dtype) != args[0].dtype:
        return NotImplemented
    return args[0]


def _leave_grad_off(func: Any, args: Any, kwargs: Any) -> Any:
    values = (*args[1:], *kwargs.values())
    return args[0] if values == (False,) else NotImplemented


def _map_values(func: Any, args: Any, kwargs: Any) -> Any:
    """Arithmetic with numbers and with one number for each channel, and conversions to other types."""
    if kwargs.keys() - {"dtype", "other"} or not args or not all(map(_is_plain_or_small, args)):
        return NotImplemented
    places = [at for at, one in enumerate(args) if isinstance(one, Deferred)]
    values = [*args, *kwargs.values()]
    keys = [None if isinstance(one, Deferred) else _key_of_value(one) for one in values]
    if len(places) != 1 or any(key is NotImplemented for key in keys):
        return NotImplemented
    tensor = args[places[0]]
    if type(tensor) is not DeferredTensor:
        return NotImplemented
    given = [one.clone() if isinstance(one, torch.Tensor) and not isinstance(one, Deferred) else one for one in args]

    def call(values: torch.Tensor) -> torch.Tensor:
        given_here = list(given)
        given_here[places[0]] = values
        made: torch.Tensor = func(*given_here, **kwargs)
        return made

    recorded = record_values(tensor, ValueStep((func, places[0], *keys, *kwargs), call))
    return NotImplemented if recorded is None else recorded


def _is_plain_or_small(value: Any) -> bool:
    return not isinstance(value, torch.Tensor) or isinstance(value, Deferred) or type(value) is torch.Tensor


def _key_of_value(value: Any) -> Any:
    """Returns what stands for an argument in a key; NotImplemented if the result may depend on more."""
    if type(value) in (int, float) or isinstance(value, torch.dtype):
        return type(value), value
    if not isinstance(value, torch.Tensor) or value.requires_grad or value.device.type != "cpu":
        return NotImplemented
    if value.dim() == 0 or (value.dim() == 3 and value.shape[1:] == (1, 1) and value.shape[0] <= 3):
        return value.dtype, tuple(value.shape), tuple(value.flatten().tolist())
    return NotImplemented


_T = torch.Tensor
_GETTERS = ("device", "layout", "requires_grad", "is_leaf", "grad", "grad_fn", "names")
_FLAGS = ("is_cuda", "is_cpu", "is_sparse", "is_quantized", "is_meta", "is_mkldnn", "is_nested", "is_mps", "is_xpu")
_ASKING = ("size", "dim", "numel", "nelement", "stride", "is_floating_point", "is_complex", "is_signed", "element_size")
_MAPPING = (
    "div",
    "__truediv__",
    "true_divide",
    "mul",
    "__mul__",
    "__rmul__",
    "sub",
    "__sub__",
    "add",
    "__add__",
    "__radd__",
)


def _register() -> None:
    for name in (*_GETTERS, *_FLAGS):
        if hasattr(_T, name):
            handlers[getattr(_T, name).__get__] = _ask_wrapper
    for name in (*_ASKING, "is_contiguous", "__len__", "ndimension", "get_device", "__hash__"):
        handlers[getattr(_T, name)] = _ask_wrapper
    for name in ("is_floating_point", "is_complex", "numel"):
        handlers[getattr(torch, name)] = _ask_wrapper
    handlers[_T.__getitem__] = _get_part
    handlers[_T.flip] = handlers[torch.flip] = _flip
    handlers[torch.as_tensor] = _as_tensor
    handlers[_T.requires_grad_] = _leave_grad_off
    for name in _MAPPING:
        handlers[getattr(_T, name)] = _map_values
    for name in ("div", "true_divide", "mul", "sub", "add"):
        handlers[getattr(torch, name)] = _map_values
    for name in ("float", "to", "half", "type_as"):
        handlers[getattr(_T, name)] = _map_values


_register()
