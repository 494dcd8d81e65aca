"""`torch.stack` and `torch.cat` of deferred tensors: each is made at its place in the result.

The result of one tensor is deferred, too: programs take the first of a batch of one again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from headrace._loading.doors.tensors.arrangements import (
    Copy,
    View,
    copy_in,
    geometry_in,
    is_dense,
)
from headrace._loading.doors.tensors.deferred_tensor import (
    Deferred,
    class_of,
    defer,
    gives_plain,
    handlers,
    is_deferring_possible,
    recorded_in,
)
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace._loading.doors.tensors.recording import Recorded, Recording, plainly

#: Returns a contiguous tensor, of a shape and a type, in memory that a batch may be sent in, and another one with the
#: same memory, to write the values to; None if there is none.
Allocate = Callable[[tuple[int, ...], torch.dtype], "tuple[torch.Tensor, torch.Tensor] | None"]


class JoinedMemory:
    """Where the results are made.

    Attributes:
        allocate: set by worker processes.
    """

    allocate: Allocate | None = None

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns a contiguous tensor, as `torch.empty`, and one with the same memory, to write the values to."""
        found = None if self.allocate is None else self.allocate(shape, dtype)
        if found is not None:
            return found
        made = torch.empty(shape, dtype=dtype)
        return made, made


joined_memory: JoinedMemory = JoinedMemory()


def stack(tensors: Sequence[object]) -> torch.Tensor | None:
    """Returns the values of `torch.stack` of tensors of which some are deferred; None if none is, or they cannot be
    made in place."""
    if not any(isinstance(one, Deferred) for one in tensors):
        return None
    parts = _find_parts(torch.stack, tensors)
    shape = None if parts is None else _shape_of_parts(torch.stack, parts)
    return None if parts is None or shape is None else _make_parts(parts, shape)


def _join(func: Any, args: Any, kwargs: Any) -> Any:
    tensors, *dim = args or ((),)
    dim = [kwargs["dim"]] if "dim" in kwargs and not dim else dim
    if (
        kwargs.keys() - {"dim", "out"}
        or kwargs.get("out") is not None
        or dim not in ([], [0])
        or not isinstance(tensors, (list, tuple))
        or not tensors
    ):
        return NotImplemented
    parts = _find_parts(func, tensors)
    shape = None if parts is None else _shape_of_parts(func, parts)
    if parts is None or shape is None:
        return NotImplemented
    if len(parts) == 1 and isinstance(parts[0], Recorded):
        joined = _join_one(func, copy_in(parts[0]), shape)
        return NotImplemented if joined is None else defer(joined)
    return _make_parts(parts, shape)


def _find_parts(func: Any, tensors: Sequence[Any]) -> list[Recorded | torch.Tensor] | None:
    """Returns what the tensors stand for, or plain ones; None if the result is torch's, or all are plain."""
    classes = {class_of(one) for one in tensors} - {torch.Tensor}  # torchvision joins no images with videos
    if not is_deferring_possible() or len(classes) > 1 or not all(gives_plain(func, one) for one in tensors):
        return None
    parts = [recorded_in(one) or _plain_part(one) for one in tensors]
    found = [one for one in parts if one is not None and _is_joinable(one)]
    has_some = any(isinstance(one, Recorded) for one in found)
    return found if has_some and len(found) == len(parts) else None


def _plain_part(tensor: Any) -> torch.Tensor | None:
    """Returns a tensor that has values, as one to copy from; None if there is more to it than values."""
    if isinstance(tensor, Deferred) or tensor.layout is not torch.strided or tensor.device.type != "cpu":
        return None
    is_plain = not (tensor.requires_grad or tensor.is_conj() or tensor.is_neg() or tensor.is_inference())
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor) if is_plain else None


def _is_joinable(part: Recorded | torch.Tensor) -> bool:
    return isinstance(part, torch.Tensor) or is_dense(part.of if isinstance(part, View) else part)


def _shape_of_parts(func: Any, parts: Sequence[Recorded | torch.Tensor]) -> tuple[int, ...] | None:
    dtype = parts[0].dtype
    described = tuple((tuple(one.shape), _strides_of(one)) for one in parts)
    return None if any(one.dtype != dtype for one in parts) else _shape_of_joined(func, dtype, described)


def _make_parts(parts: Sequence[Recorded | torch.Tensor], shape: tuple[int, ...]) -> torch.Tensor:
    """Returns the values of the parts, one after another, in a tensor of this shape."""
    with plainly(), torch.no_grad():
        out, written = joined_memory.empty(shape, parts[0].dtype)
        flat, at = written.view(-1), 0
        for one in parts:
            size = math.prod(one.shape)
            _make_into(copy_in(one) if isinstance(one, Recorded) else one, flat[at : at + size])
            at += size
    return out


def _strides_of(part: Recorded | torch.Tensor) -> tuple[int, ...]:
    return part.stride() if isinstance(part, torch.Tensor) else part.strides


@functools.lru_cache(maxsize=256)
def _shape_of_joined(
    func: Any, dtype: torch.dtype, parts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
) -> tuple[int, ...] | None:
    """Returns the shape of a function's result, given the shapes and strides of its tensors; None if it is not
    contiguous, or the function raises an error."""
    try:
        made = func([torch.empty_strided(*one, dtype=dtype, device="meta") for one in parts])
    except Exception:  # raised again where the function is called with the tensors themselves
        return None
    return tuple(made.shape) if made.is_contiguous() else None


def _join_one(func: Any, part: Recorded, shape: tuple[int, ...]) -> Recorded | None:
    """Returns a tensor of its own memory with the values of one."""
    if isinstance(part, Recording) and func is torch.stack and (part.state.frames is not None or not part.state.lead):
        state = part.state._replace(lead=(1, *part.state.lead), layout=Layout.PLANAR)
        return Recording(part.origin, state, part, lambda tensor: torch.stack([tensor]))
    if isinstance(part, Copy):
        return Copy(part.content, part.geometry, shape, part.padding)
    if isinstance(part, View) and isinstance(part.of, Recording):
        return Copy(part.of.content, part.geometry, shape)
    if isinstance(part, Recording):
        return Copy(part.content, geometry_in(part), shape)
    return None


def _make_into(part: Recorded | torch.Tensor, out: torch.Tensor) -> None:
    """Writes the values of a tensor into one of as many elements, of one dimension."""
    if isinstance(part, torch.Tensor):
        out.view(part.shape).copy_(part)
    elif isinstance(part, Recording):
        part.content.make_into(out.view(part.shape))
    elif isinstance(part, Copy):
        part.make_into(out)
    else:
        out.view(part.shape).copy_(part.make_native())


for _function in (torch.stack, torch.cat, torch.concat, torch.concatenate):
    handlers[_function] = _join
