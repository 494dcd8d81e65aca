"""Gives a collate_fn the samples of a finished batch as views, and hands the batch back where it stacks them all."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch.overrides import (  # type: ignore[attr-defined]
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_torch_function_stack,
    _push_on_torch_function_stack,
)

# Functions after which memory may be read or written without torch's knowledge.
_EXPORTS = frozenset(
    ("numpy", "__array__", "data_ptr", "untyped_storage", "storage", "_typed_storage", "__dlpack__", "__set__")
)


def _count_references(views: Sequence[object]) -> list[int]:
    """Numbers of references to each object of a list, with those of this loop: from Python 3.14 on one fewer."""
    return [sys.getrefcount(view) for view in views]


_OWN_REFERENCES = max(_count_references([object()]))  # to a view that only its own list holds


class _Stack:
    """A batch (n, ...) and its n views. `batch` and `views` share memory until `separate` is called."""

    def __init__(self, batch: torch.Tensor, views: list[torch.Tensor]) -> None:
        self.batch, self.views = batch, views
        self.address = batch.untyped_storage().data_ptr()
        self.handed_out = False  # torch.stack returned `batch`
        self.aliased = False  # the views have aliases that `separate` would miss

    def holds(self, tensor: torch.Tensor) -> bool:
        return tensor.layout is torch.strided and tensor.untyped_storage().data_ptr() == self.address

    def is_view(self, tensor: torch.Tensor) -> bool:
        return any(tensor is view for view in self.views)

    def copy_views(self) -> None:
        """Gives the views memory of their own, with the values that they have now."""
        self.handed_out = False
        self.aliased = True
        for view, copy in zip(self.views, self.batch.clone(), strict=True):
            view.data = copy


class StackedViews(TorchFunctionMode):
    """While active, ``torch.stack`` of all views of a batch, in order, returns the batch instead of a copy.

    A program sees no difference: before the batch is written to, or a view is used again, the views get a copy. After
    any operation on the views that returns a view of them, or memory, ``torch.stack`` copies.

    After an interrupt the stack of modes is what it was before: torch takes a mode off it for the time of a call and
    may be interrupted before it is put back.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stacks: list[_Stack] = []
        self._watches = True
        self._modes: list[TorchFunctionMode] = []  # those active around this one

    def __enter__(self) -> StackedViews:
        self._modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        try:
            return super().__enter__()  # type: ignore[no-any-return, no-untyped-call]
        except BaseException:
            self._restore_modes()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            self._restore_modes()
            return
        try:
            super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        except BaseException:
            self._restore_modes()
            raise

    def _restore_modes(self) -> None:
        """Makes torch's stack of function modes what it was before `__enter__`."""
        while _get_current_function_mode_stack():  # type: ignore[no-untyped-call]
            _pop_torch_function_stack()
        for mode in self._modes:
            _push_on_torch_function_stack(mode)

    def views_of(self, batch: torch.Tensor, kind: type[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the samples of a batch (n, ...), views of class `kind`."""
        with torch._C.DisableTorchFunction():  # unbind's views refuse autograd
            views = [batch[place].as_subclass(kind) for place in range(len(batch))]
        self._stacks.append(_Stack(batch, views))
        # The caller's list is another one: a program may change it.
        return list(views)

    def stop(self) -> None:
        """Called when nothing uses the views any more, or keeps them: from now on no function of torch is watched, and
        the batch may be written to."""
        self._watches = False

    def finish(self) -> None:
        """Gives views that are still referred to a copy, if the batch was handed out. Call it after the program's code,
        without holding a view."""
        for stack in self._stacks:
            if stack.handed_out and max(_count_references(stack.views), default=0) > _OWN_REFERENCES:
                stack.copy_views()
        self._stacks = []

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if not self._watches:
            return func(*args, **kwargs)
        if func is torch.stack and (whole := self._find_whole_batch(*args, **kwargs)) is not None:
            return whole
        given = list(_tensors((args, kwargs)))
        touched = [stack for stack in self._stacks if any(map(stack.holds, given))]
        if not touched:
            return func(*args, **kwargs)
        for stack in touched:
            if stack.handed_out and (_may_write_arguments(func, args, kwargs) or any(map(stack.is_view, given))):
                stack.copy_views()
        made = func(*args, **kwargs)
        for stack in touched:
            exported = getattr(func, "__name__", "") in _EXPORTS
            stack.aliased |= not stack.handed_out and (exported or any(map(stack.holds, _tensors(made))))
        return made

    def _find_whole_batch(self, tensors: object = None, dim: object = 0, *, out: object = None) -> torch.Tensor | None:
        """Returns the batch whose views are `tensors`; None if there is none or it has to be copied."""
        if dim != 0 or out is not None or not isinstance(tensors, (list, tuple)):
            return None
        for stack in self._stacks:
            if stack.aliased or stack.handed_out or len(stack.views) != len(tensors):
                continue
            if all(a is b for a, b in zip(stack.views, tensors, strict=True)):
                stack.handed_out = True
                # The class that torch makes of the views': torchvision's become plain tensors, others keep theirs.
                kind = torch.Tensor if type(tensors[0]) is torch.Tensor else type(torch.stack([tensors[0]]))
                return stack.batch if kind is torch.Tensor else stack.batch.as_subclass(kind)
        return None


def _may_write_arguments(func: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
    """Whether a function of torch may write to its arguments, or lets others do so: by torch's naming rules."""
    name = getattr(func, "__name__", "")
    if name in _EXPORTS or name in ("__setitem__", "__delitem__") or "out" in kwargs:
        return True
    if name.endswith("_") and not name.endswith("__"):
        return True
    if name.startswith("__i") and name not in ("__invert__", "__index__", "__int__", "__iter__"):
        return True
    if inspect.isfunction(func) and "inplace" in func.__code__.co_varnames[: func.__code__.co_argcount]:
        return bool(inspect.signature(func).bind(*args, **kwargs).arguments.get("inplace"))
    return False


def _tensors(value: object) -> Iterator[torch.Tensor]:
    """Yields the tensors of nested tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _tensors(one)
