"""Functions of torch that deferred tensors record, and those that ask for what is known without their values."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch

from headrace._loading.doors.tensors.deferred_tensor import (
    Deferred,
    DeferredTensor,
    defer,
    gives_plain,
    handlers,
    is_deferring_possible,
    recording_of,
    set_recording,
)
from headrace._loading.doors.tensors.memory_layout import FEWEST, Layout, probe_layout
from headrace._loading.doors.tensors.recording import Recording, Replay, ValueStep, table_of
from headrace.pillow.recording.lazy_core import MOST_PIXELS, Operation

_NUMPYS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float16, torch.float32)  # in at most 4 bytes


def record_pixels(tensor: torch.Tensor, *arguments: Any, **named: Any) -> torch.Tensor | None:
    """Records a function of a deferred tensor that makes new memory for other pixels; returns None if it cannot be
    recorded. Arguments: those of `change_pixels` after the first."""
    recording = recording_of(tensor)
    if recording is None or not is_deferring_possible():
        return None
    made = change_pixels(recording, *arguments, **named)
    return None if made is None else defer(made)


def change_pixels(
    recording: Recording,
    key: Hashable,
    operations: tuple[Operation, ...],
    size: tuple[int, int],
    replay: Replay,
    of_small: Replay | None = None,
    channels: int | None = None,
) -> Recording | None:
    """Returns what a function's result stands for that makes new memory for other pixels; None if it cannot be
    recorded.

    Args:
        recording: of the tensor that the function gets.
        key: equal for calls whose results have the same order in memory.
        operations: what the function does, natively.
        size: (height, width) of its result.
        replay: the function.
        of_small: the same for a tensor of few pixels, if it is another one.
        channels: of its result; None: as many as the tensor has.
    """
    state = recording.state
    if state.finish is not None or not _is_size_recordable(size):
        return None
    found = probe_layout(
        key, of_small or replay, state.layout, state.channels, state.dtype, recording.cut, recording.lead, channels
    )
    if found is None or found[1] != state.dtype:
        return None
    changed = (*state.operations, *operations)
    after = state._replace(height=size[0], width=size[1], layout=found[0], operations=changed)
    if channels is not None and channels != state.channels:
        after = after._replace(channels=channels, table=table_of(channels, state.steps))
    return Recording(recording.origin, after, recording, replay)


def record_values(tensor: torch.Tensor, step: ValueStep, *, in_place: bool = False) -> torch.Tensor | None:
    """Records a function that maps each value alike; returns None if it cannot be recorded.

    Args:
        in_place: whether the function changes the tensor and returns it.
    """
    recording = recording_of(tensor)
    if recording is None or not is_deferring_possible():
        return None
    mapped = change_values(recording, step, in_place=in_place)
    if mapped is None:
        return None
    return set_recording(tensor, mapped) if in_place else defer(mapped)


def change_values(recording: Recording, step: ValueStep, *, in_place: bool = False) -> Recording | None:
    """Returns what a function's result stands for that maps each value alike; None if it cannot be recorded."""
    state = recording.state
    if state.finish is not None or not state.is_of_default():
        return None
    if in_place and (recording.is_shared or state.layout is Layout.EXPANDED):  # torch refuses to write to the latter
        return None
    call = _on_copy(step.call) if in_place else step.call
    key = (torch.get_default_dtype(), step.key, in_place)
    found = probe_layout(key, call, state.layout, state.channels, state.dtype, recording.cut, recording.lead)
    if found is None or found[1] not in _NUMPYS:
        return None
    layout, dtype = (state.layout, state.dtype) if in_place else found
    steps = (*state.steps, step)
    after = state._replace(layout=layout, dtype=dtype, steps=steps, table=table_of(state.channels, steps))
    return Recording(recording.origin, after, recording, call)


def record_finish(tensor: torch.Tensor, finish: Replay) -> torch.Tensor | None:
    """Records a function that copies a tensor and changes the copy in place; returns None if it cannot be recorded."""
    recording = recording_of(tensor)
    if recording is None or recording.state.finish is not None or not is_deferring_possible():
        return None
    state = recording.state
    found = probe_layout("clone", torch.clone, state.layout, state.channels, state.dtype, recording.cut, recording.lead)
    if found is None:
        return None
    after = state._replace(layout=found[0], finish=finish)
    return defer(Recording(recording.origin, after, recording, _on_copy(finish)))


def _on_copy(function: Replay) -> Replay:
    """A function that changes its tensor, as one that makes another: what was recorded before stays as it is."""

    def call(values: torch.Tensor) -> torch.Tensor:
        return function(values.clone())

    return call


def record_part(tensor: torch.Tensor, box: tuple[int, int, int, int]) -> torch.Tensor | None:
    """Records a view of a part: (top, bottom, left, right); returns None if it cannot be recorded."""
    recording = recording_of(tensor)
    part = None if recording is None or not is_deferring_possible() else part_of(recording, box)
    return None if part is None else defer(part)


def part_of(recording: Recording, box: tuple[int, int, int, int]) -> Recording | None:
    """Returns what a view of a part stands for: (top, bottom, left, right); None if it cannot be recorded."""
    top, bottom, left, right = box
    height, width = bottom - top, right - left
    state = recording.state
    if state.finish is not None or not _is_size_recordable((height, width)):
        return None
    crop: Operation = ("crop", (left, top, right, bottom))

    def replay(whole: torch.Tensor) -> torch.Tensor:
        return whole[..., top:bottom, left:right]

    cropped = (*state.operations, crop)
    after = state._replace(height=height, width=width, operations=cropped)
    return Recording(recording.origin, after, recording, replay, is_view=True)


def record_first_dimension(tensor: torch.Tensor, *, more: bool) -> torch.Tensor | None:
    """Records a view with a first dimension of one more, or without this; returns None if it cannot be recorded."""
    recording = recording_of(tensor)
    if recording is None or recording.state.finish is not None or not is_deferring_possible():
        return None
    lead = recording.state.lead
    if recording.state.frames is None and more is bool(lead):  # an image has one such dimension at most
        return None
    if not more and lead[:1] != (1,):
        return None
    lead = (1, *lead) if more else lead[1:]
    before = recording.find_whole(lead)
    if before is not None:
        return defer(before)
    after = recording.state._replace(lead=lead)
    replay: Replay = (lambda image: image.unsqueeze(0)) if more else (lambda batch: batch[0])
    return defer(Recording(recording.origin, after, recording, replay, is_view=True))


def _is_size_recordable(size: tuple[int, int]) -> bool:
    return min(size) >= FEWEST and size[0] * size[1] <= MOST_PIXELS


def _ask_wrapper(func: Any, args: Any, kwargs: Any) -> Any:
    """What the tensor without memory knows itself."""
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _get_part(func: Any, args: Any, kwargs: Any) -> Any:
    tensor, key = args
    state = recording_of(tensor)
    if state is None or type(tensor) is not DeferredTensor:
        return NotImplemented
    if key is None or (type(key) is int and key in (0, -1) and state.state.lead[:1] == (1,)):
        made = record_first_dimension(tensor, more=key is None)
    else:
        box = _box_of(key, state.state.shape)
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
    *whole, (top, bottom, _), (begin, end, _) = (one.indices(edge) for one, edge in zip(keys, shape, strict=True))
    return (
        (top, bottom, begin, end)
        if all(one[:2] == (0, edge) for one, edge in zip(whole, shape[:-2], strict=True))
        else None
    )


def _flip(func: Any, args: Any, kwargs: Any) -> Any:
    tensor, *dims = args or (None,)
    if kwargs.keys() - {"dims"} or type(tensor) is not DeferredTensor:
        return NotImplemented
    dims = kwargs.get("dims", dims)
    dims = [dims] if type(dims) is int else list(dims)
    dims = list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims
    count = tensor.dim()
    if len(dims) != 1 or type(dims[0]) is not int or not -count <= dims[0] < count:
        return NotImplemented
    axis = dims[0] % count - count
    made = record_flip(tensor, axis) if axis in (-1, -2) else None
    return NotImplemented if made is None else made


def record_flip(tensor: torch.Tensor, axis: int) -> torch.Tensor | None:
    """Records `Tensor.flip` along -1 or -2; returns None if it cannot be recorded."""
    recording = recording_of(tensor)
    made = None if recording is None or not is_deferring_possible() else flip(recording, axis)
    return None if made is None else defer(made)


def flip(recording: Recording, axis: int) -> Recording | None:
    """Returns what a flipped tensor stands for; None if it cannot be recorded."""
    operation: Operation = ("transpose", 0 if axis == -1 else 1)
    size = recording.state.height, recording.state.width
    return change_pixels(recording, ("flip", axis), (operation,), size, lambda image: image.flip(axis))


def _as_tensor(func: Any, args: Any, kwargs: Any) -> Any:
    """torch.as_tensor returns a tensor as it is, unless it has another type or device."""
    if len(args) != 1 or type(args[0]) is not DeferredTensor:
        return NotImplemented
    others = {name: value for name, value in kwargs.items() if value is not None}
    if others.keys() - {"dtype"} or others.get("dtype", args[0].dtype) != args[0].dtype:
        return NotImplemented
    return args[0]


def _unsqueeze(func: Any, args: Any, kwargs: Any) -> Any:
    if len(args) != 2 or kwargs or type(args[0]) is not DeferredTensor or args[1] != 0 or type(args[1]) is not int:
        return NotImplemented
    made = record_first_dimension(args[0], more=True)
    return NotImplemented if made is None else made


def _squeeze(func: Any, args: Any, kwargs: Any) -> Any:
    """Of the first dimension, the only one of a batch of one image with several channels that has one element."""
    recording = recording_of(args[0]) if args else None
    if recording is None or len(args) > 2 or kwargs or type(args[0]) is not DeferredTensor:
        return NotImplemented
    state = recording.state
    is_only = state.channels > 1 and 1 not in state.lead[1:]
    is_first = args[1] == 0 and type(args[1]) is int if len(args) == 2 else is_only
    if not is_first or state.lead[:1] != (1,):
        return NotImplemented
    made = record_first_dimension(args[0], more=False)
    return NotImplemented if made is None else made


def _contiguous(func: Any, args: Any, kwargs: Any) -> Any:
    """A tensor that is contiguous is returned as it is. Of an image, torchvision returns another object."""
    tensor = args[0]
    if type(tensor) is not DeferredTensor or len(args) != 1 or kwargs or recording_of(tensor) is None:
        return NotImplemented
    return tensor if tensor.is_contiguous() else NotImplemented


def _leave_grad_off(func: Any, args: Any, kwargs: Any) -> Any:
    values = (*args[1:], *kwargs.values())
    return args[0] if values == (False,) else NotImplemented


def _map_values(func: Any, args: Any, kwargs: Any) -> Any:
    """Arithmetic with numbers and with one number for each channel, and conversions to other types."""
    if (
        kwargs.keys() - {"dtype", "other"}
        or not args
        or not is_deferring_possible()
        or not all(map(_is_plain_or_small, args))
    ):
        return NotImplemented
    places = [at for at, one in enumerate(args) if isinstance(one, Deferred)]
    values = [*args, *kwargs.values()]
    keys = [None if isinstance(one, Deferred) else _key_of_value(one) for one in values]
    if len(places) != 1 or any(key is NotImplemented for key in keys):
        return NotImplemented
    tensor = _as_operand(args[places[0]], func)
    if tensor is None:
        return NotImplemented
    given, named = [_snapshot(one) for one in args], {name: _snapshot(one) for name, one in kwargs.items()}

    def call(values: torch.Tensor) -> torch.Tensor:
        given_here = list(given)
        given_here[places[0]] = values
        made: torch.Tensor = func(*given_here, **named)
        return made

    recorded = record_values(tensor, ValueStep((func, places[0], *keys, *kwargs), call))
    return NotImplemented if recorded is None else recorded


def _as_operand(tensor: Any, func: Any) -> torch.Tensor | None:
    """Returns a tensor as a function of torch's gets it; None if its result might be of another class: of an image it
    is a `torch.Tensor`, unless torchvision says otherwise."""
    if type(tensor) is DeferredTensor:
        return tensor
    recording = recording_of(tensor)
    return None if recording is None or not gives_plain(func, tensor) else defer(recording)


def _convert(func: Any, args: Any, kwargs: Any) -> Any:
    """To another type; a tensor that has this type is returned as it is."""
    wanted = (torch.float32, *args[1:]) if func is _T.float else args[1:]
    if len(wanted) == 1 and not kwargs and recording_of(args[0]) is not None and wanted[0] is args[0].dtype:
        return args[0] if type(args[0]) is DeferredTensor else NotImplemented
    return _map_values(func, args, kwargs)


def _snapshot(value: Any) -> Any:
    """A number for each channel as it is now: the program may change it later."""
    return value.clone() if isinstance(value, torch.Tensor) and not isinstance(value, Deferred) else value


def _is_plain_or_small(value: Any) -> bool:
    return not isinstance(value, torch.Tensor) or isinstance(value, Deferred) or type(value) is torch.Tensor


def _key_of_value(value: Any) -> Any:
    """Returns what stands for an argument in a key; NotImplemented if the result may depend on more."""
    if type(value) in (int, float) or isinstance(value, torch.dtype):
        return type(value), repr(value)  # 0.0 is not -0.0
    if not isinstance(value, torch.Tensor) or value.requires_grad or value.device.type != "cpu":
        return NotImplemented
    if value.dim() == 0 or (value.dim() == 3 and value.shape[1:] == (1, 1) and value.shape[0] <= 3):
        return value.dtype, tuple(value.shape), repr(value.flatten().tolist())
    return NotImplemented


_T = torch.Tensor
_GETTERS = ("device", "layout", "requires_grad", "is_leaf", "grad", "grad_fn", "names")
_FLAGS = ("is_cuda", "is_cpu", "is_sparse", "is_quantized", "is_meta", "is_mkldnn", "is_nested", "is_mps", "is_xpu")
_ASKING = ("size", "dim", "numel", "nelement", "stride", "is_floating_point", "is_complex", "is_signed", "element_size")
_MAPPING = (
    *("div", "__truediv__", "true_divide", "mul", "__mul__", "__rmul__"),
    *("sub", "__sub__", "add", "__add__", "__radd__", "half", "type_as"),
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
    handlers[_T.unsqueeze] = handlers[torch.unsqueeze] = _unsqueeze
    handlers[_T.squeeze] = handlers[torch.squeeze] = _squeeze
    handlers[_T.contiguous] = _contiguous
    handlers[_T.flip] = handlers[torch.flip] = _flip
    handlers[torch.as_tensor] = _as_tensor
    handlers[_T.requires_grad_] = _leave_grad_off
    for name in _MAPPING:
        handlers[getattr(_T, name)] = _map_values
    for name in ("div", "true_divide", "mul", "sub", "add"):
        handlers[getattr(torch, name)] = _map_values
    for name in ("float", "to"):
        handlers[getattr(_T, name)] = _convert


_register()
