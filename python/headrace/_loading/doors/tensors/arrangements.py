"""Deferred tensors whose dimensions are no longer those of an image: views that reshape or permute its values, and
copies of these, such as the patches of an image.

Each function is called with a tensor without memory of the same shape and strides, and its result tells these of the
function's own result, and whether that is a view.
"""

from __future__ import annotations

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
from headrace._loading.doors.tensors.recording import Content, Recorded, Recording


class Geometry(NamedTuple):
    """Where the elements of a view are in the memory of its whole: as `torch.as_strided` has it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def view(self, whole: torch.Tensor) -> torch.Tensor:
        return whole.as_strided(self.shape, self.strides, whole.storage_offset() + self.offset)


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


class Copy(Recorded):
    """A contiguous tensor of the elements of a view, in their order.

    Args:
        content: the values of the image.
        geometry: the view of it.
        shape: of the copy.
    """

    def __init__(self, content: Content, geometry: Geometry, shape: tuple[int, ...]) -> None:
        self.origin, self.geometry = content.origin, geometry
        self._content: Content | None = content
        super().__init__(self.origin.pixels, shape, contiguous_strides(shape), content.state.dtype)

    @property
    def content(self) -> Content:
        """What the values are made of, until they are made."""
        assert self._content is not None
        return self._content

    def make_into(self, out: torch.Tensor) -> None:
        """Writes the values into a contiguous tensor of as many elements."""
        out.view(self.geometry.shape).copy_(self.geometry.view(self.content.make(for_a_while=True)))

    def _make(self) -> torch.Tensor:
        with torch.no_grad():
            made = torch.empty(self.shape, dtype=self.dtype)
            self.make_into(made)
            return made

    def _forget(self) -> None:
        self._content = None


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a contiguous tensor, as torch has them."""
    return torch.empty(shape, device="meta").stride()


def geometry_of(tensor: torch.Tensor) -> Geometry:
    """Returns where the elements of a tensor without memory are in its storage."""
    return Geometry(tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()))


def stand_in(recorded: Recorded) -> torch.Tensor:
    """Returns a tensor without memory, of the same shape, strides and type, and of the same place in its storage."""
    if isinstance(recorded, View):
        whole = torch.empty_strided(recorded.of.shape, recorded.of.strides, dtype=recorded.dtype, device="meta")
        return recorded.geometry.view(whole)
    return torch.empty_strided(recorded.shape, recorded.strides, dtype=recorded.dtype, device="meta")


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
    given = stand_in(recorded)
    try:
        made = func(given, *args[1:], **kwargs)
    except Exception:  # raised again where the function is called with the tensor itself
        return NotImplemented
    if (
        type(made) is not torch.Tensor
        or made.numel() == 0
        or made.dtype != recorded.dtype
        or made.device != given.device
    ):
        return NotImplemented
    if made is given:
        return args[0]
    if made.untyped_storage()._cdata == given.untyped_storage()._cdata:
        return defer(View(whole, geometry_of(made)))
    if isinstance(whole, Copy) or not made.is_contiguous() or func not in _COPYING:
        return NotImplemented
    return defer(Copy(whole.content, geometry_of(given), tuple(made.shape)))


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
