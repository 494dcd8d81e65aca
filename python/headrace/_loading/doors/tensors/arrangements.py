"""Deferred tensors whose dimensions are no longer those of an image: views that reshape or permute its values, and
copies of these, such as the patches of an image.

Each function is called with a tensor without memory of the same shape and strides, and its result tells these of the
function's own result, and whether that is a view.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from headrace._loading.doors.tensors import recorded_functions  # noqa: F401 - what it registers comes first
from headrace._loading.doors.tensors.deferred_tensor import (
    DeferredTensor,
    defer,
    handlers,
    is_deferring_possible,
    recorded_in,
)
from headrace._loading.doors.tensors.geometries import Geometry, contiguous_strides, find_outcome
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace._loading.doors.tensors.recording import Content, Recorded, Recording
from headrace.pillow.memory import pixel_memory


class View(Recorded):
    """A view of an image's tensor, or of a `Copy`: see Note [views].

    Args:
        whole: what it is a view of.
        geometry: where its elements are.
    """

    def __init__(self, whole: Recording | Copy, geometry: Geometry) -> None:
        self.of, self.geometry = whole, geometry
        super().__init__(whole.origin.pixels, geometry.shape, geometry.strides, whole.dtype, whole)

    def _make(self) -> torch.Tensor:
        return self.geometry.view(self.of.make_native())

    def _forget(self) -> None:
        pass


class Padding(NamedTuple):
    """What is around the elements of a copy.

    Attributes:
        inner: where the elements are in the copy's memory; of the shape of the view that they come from.
        value: of all other elements.
    """

    inner: Geometry
    value: float


class Copy(Recorded):
    """A contiguous tensor of the elements of a view, in their order.

    Args:
        content: the values of the image.
        geometry: the view of it.
        shape: of the copy.
        padding: what else the copy has.
    """

    def __init__(
        self, content: Content, geometry: Geometry, shape: tuple[int, ...], padding: Padding | None = None
    ) -> None:
        self.origin, self.geometry, self.padding = content.origin, geometry, padding
        self._content: Content | None = content
        super().__init__(self.origin.pixels, shape, contiguous_strides(shape), content.state.dtype)

    @property
    def content(self) -> Content:
        """What the values are made of, until they are made."""
        assert self._content is not None
        return self._content

    def make_into(self, out: torch.Tensor) -> None:
        """Writes the values into a contiguous tensor of as many elements."""
        if self.padding is None:
            inner = out.view(self.geometry.shape)
        else:
            inner = self.padding.inner.view(out)
            _fill_around(inner, out, self.padding.value)
        inner.copy_(self._view())

    def _view(self) -> torch.Tensor:
        """Returns the view that is copied, of values in an order in memory that makes the copy quick."""
        state, geometry = self.content.state, self.geometry
        if state.layout is Layout.PLANAR and (of_pixels := geometry.by_pixel(*state.shape[-3:])) is not None:
            made = self.content.make_in_order(Layout.CHANNELS_LAST)
            if made is not None:
                return of_pixels.view(made)
        return geometry.view(self.content.make(for_a_while=True))

    def _make(self) -> torch.Tensor:
        with torch.no_grad():
            # Where the sample's place in its batch is, if that is known.
            made = torch.from_numpy(pixel_memory.empty(self.shape, self.content.state.table.dtype))
            self.make_into(made)
            return made

    def _forget(self) -> None:
        self._content = None


def _fill_around(inner: torch.Tensor, out: torch.Tensor, value: float) -> None:
    """Writes a value to the elements of a contiguous tensor that are not those of a part; or, where these are not next
    to each other, to all."""
    if not inner.is_contiguous():
        out.fill_(value)
        return
    begin, flat = inner.storage_offset() - out.storage_offset(), out.view(-1)
    flat[:begin].fill_(value)
    flat[begin + inner.numel() :].fill_(value)


def copy_in(part: Recorded) -> Recorded:
    """Returns the copy of which a tensor is a view that has all its elements in their order, such as one of another
    shape; every other tensor as it is."""
    if not isinstance(part, View) or not isinstance(part.of, Copy):
        return part
    is_whole = part.geometry.offset == 0 and math.prod(part.shape) == math.prod(part.of.shape)
    return part.of if is_whole and part.strides == contiguous_strides(part.shape) else part


def stand_in(recorded: Recorded) -> torch.Tensor:
    """Returns a tensor without memory, of the same shape, strides and type, and of the same place in its storage."""
    if isinstance(recorded, View):
        whole = torch.empty_strided(recorded.of.shape, recorded.of.strides, dtype=recorded.dtype, device="meta")
        return recorded.geometry.view(whole)
    return torch.empty_strided(recorded.shape, recorded.strides, dtype=recorded.dtype, device="meta")


def geometry_in(recorded: Recorded) -> Geometry:
    """Returns where the elements of a tensor are in its storage."""
    return recorded.geometry if isinstance(recorded, View) else Geometry(recorded.shape, recorded.strides, 0)


def is_dense(recorded: Recorded) -> bool:
    """Whether the memory of a tensor that is no `View` has its elements and no others, all with their last values."""
    return not isinstance(recorded, Recording) or (not any(recorded.cut) and recorded.state.finish is None)


def arrange(func: Any, args: Any, kwargs: Any) -> Any:
    """Records a function that views, or copies, the elements of a tensor."""
    recorded = recorded_in(args[0]) if args else None
    if recorded is None or type(args[0]) is not DeferredTensor or not is_deferring_possible():
        return NotImplemented
    whole = recorded.of if isinstance(recorded, View) else recorded
    if not isinstance(whole, (Recording, Copy)) or not is_dense(whole):
        return NotImplemented
    made = find_outcome(func, lambda: stand_in(recorded), (geometry_in(recorded), recorded.dtype), args[1:], kwargs)
    if made is None:
        return NotImplemented
    if made.is_same:
        return args[0]
    if made.is_view:
        frames = _find_frames(whole, made.geometry)
        return defer(View(whole, made.geometry) if frames is None else frames)
    if isinstance(whole, Copy) or not made.is_contiguous or func not in _COPYING:
        return NotImplemented
    return defer(Copy(whole.content, geometry_in(recorded), made.geometry.shape))


def _find_frames(whole: Recording | Copy, geometry: Geometry) -> Recording | None:
    """Returns a view of a clip that is one of some of its frames, next to each other: what a program makes of them is
    recorded. None for other views."""
    if not isinstance(whole, Recording) or whole.state.frames is None:
        return None
    state, shape = whole.state, geometry.shape
    lead, first = shape[:-3], whole.state.frames.start
    if len(shape) < 3 or shape[-3:] != state.shape[-3:] or geometry.strides != state.layout.strides(shape):
        return None
    number, rest = divmod(geometry.offset, state.layout.strides((2, *state.shape[-3:]))[0])
    if rest:
        return None
    begin = first + number
    frames = range(begin, begin + math.prod(lead))
    if frames == state.frames and lead == state.lead:
        whole.is_shared = True
        return whole
    after = state._replace(lead=lead, frames=frames)
    return Recording(whole.origin, after, whole, geometry.view, is_view=True, strides=geometry.strides)


_T = torch.Tensor
_VIEWING = ("view", "permute", "unsqueeze", "squeeze", "expand", "transpose", "unfold", "__getitem__", "movedim")
#: What they do, they do to the order of the elements of a copy, too.
_COPYING = {_T.reshape, _T.flatten, _T.contiguous, torch.reshape, torch.flatten}


def _after(before: Any) -> Any:
    """A handler for what another one does not record."""

    def handle(func: Any, args: Any, kwargs: Any) -> Any:
        made = before(func, args, kwargs)
        return arrange(func, args, kwargs) if made is NotImplemented else made

    return handle


def _register() -> None:
    of_torch = ("permute", "unsqueeze", "squeeze", "transpose", "movedim")
    functions = [*(getattr(_T, name) for name in _VIEWING), *(getattr(torch, name) for name in of_torch), *_COPYING]
    for function in functions:
        before = handlers.get(function)
        handlers[function] = arrange if before is None else _after(before)


_register()
