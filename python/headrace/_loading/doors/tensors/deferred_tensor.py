"""Tensors of images without values, until something needs them.

Note [deferred tensors]: such a tensor is an instance of a subclass of `torch.Tensor`, or of `tv_tensors.Image` or
`Video`, without memory. Its shape, type and strides are right. Functions that `recorded_functions` knows return another
one of its kind; all others make its values first. Then the object *becomes* a plain tensor: it gets the memory and the
class of one. So identity, aliases and in-place changes are those of plain tensors, and only `type` can tell a
difference, before anything has read the tensor.
"""

from __future__ import annotations

import contextlib
import copyreg
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils._pytree import tree_map_only

from headrace._loading.doors.tensors.recording import Recorded, Recording, plainly
from headrace.pillow import open_patch

_RECORDING = "_recording"
_becoming = threading.RLock()
#: Called with a function of torch, its arguments and keywords, one of which is a deferred tensor; returns
#: NotImplemented to have the values made.
Handler = Callable[..., Any]
handlers: dict[Any, Handler] = {}


# Code in C++ that asks for the memory gets an error, not an address where nothing is.
_guard: Callable[[torch.Tensor], object] = getattr(torch._C, "_set_throw_on_mutable_data_ptr", lambda tensor: None)


class _Meta(type(torch.Tensor)):  # type: ignore[misc]
    """Makes the classes equal to those that they stand for, as keys of a dict, too, and their instances those of these:
    ``isinstance(result, type(tensor))`` holds of a plain result."""

    stands_for: type

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.stands_for

    def __hash__(cls) -> int:
        return hash(cls.stands_for)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.stands_for)

    # No __subclasscheck__: torch asks the `__torch_function__` of a plain tv_tensor first, as an instance of ours, and
    # that one leaves the call to ours, because its class is no subclass.


def _return_class(plain: Any) -> Any:
    return plain


def _reduce_class(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return _return_class, (kind.stands_for,)


# Pickled is the class that one stands for: `{type(image): dtype}` is an argument of transforms.
copyreg.pickle(_Meta, _reduce_class)


class Deferred:
    """What the classes of deferred tensors have in common."""

    __slots__ = ()

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        handler = handlers.get(func)
        if handler is not None:
            made = handler(func, args, kwargs)
            if made is not NotImplemented:
                return made
        if not make_samples((args, kwargs)):  # in a structure that is not known, or still deferred
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    # Asked most often, and quicker here than through `__torch_function__`.

    shape = property(lambda self: torch.Size(self.__dict__[_RECORDING].shape))
    dtype = property(lambda self: self.__dict__[_RECORDING].dtype)
    ndim = property(lambda self: len(self.__dict__[_RECORDING].shape))

    def as_subclass(self, cls: type) -> Any:
        """A tensor of another class with the same memory. The method of torch does not ask `__torch_function__`."""
        if not isinstance(cls, type):
            return make(self).as_subclass(cls)
        recording, plain = recording_of(self), cls.__dict__.get("stands_for", cls)
        if recording is not None and (plain is torch.Tensor or (type(self) is DeferredTensor and kind_for(plain))):
            recording.is_shared = True
            return defer(recording, plain)
        return make(self).as_subclass(plain)

    def set_(self, *args: Any, **kwargs: Any) -> Any:
        """Another method of torch that does not ask `__torch_function__`."""
        return make(self).set_(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Reached by code in C++, which does not ask for `__torch_function__`."""
        args, kwargs = tree_map_only(Deferred, _values_of, (args, kwargs or {}))
        return func(*args, **kwargs)


class DeferredTensor(Deferred, torch.Tensor, metaclass=_Meta):  # type: ignore[misc]
    """Stands for a `torch.Tensor`."""


DeferredTensor.stands_for = torch.Tensor
DeferredTensor.__name__ = DeferredTensor.__qualname__ = "Tensor"
DeferredTensor.__module__ = "torch"
_OF_TORCHVISION = ("torchvision.tv_tensors._image", "Image"), ("torchvision.tv_tensors._video", "Video")
_kinds: dict[type, type] = {torch.Tensor: DeferredTensor}


def kind_for(plain: type) -> type | None:
    """Returns the class that stands for a plain one: `torch.Tensor` or, once they are imported, `tv_tensors.Image` and
    `tv_tensors.Video`."""
    found = _kinds.get(plain)
    if found is None and (plain.__module__, plain.__qualname__) in _OF_TORCHVISION:
        found = _Meta(plain.__name__, (Deferred, plain), {"__module__": plain.__module__, "stands_for": plain})
        _kinds[plain] = found
    return found


def gives_plain(func: Any, tensor: object) -> bool:
    """Whether a function of torch's returns a `torch.Tensor` of this one, deferred or not: also of an image or a video,
    unless the program or torchvision says that they keep their class."""
    plain = class_of(tensor)
    if plain is torch.Tensor:
        return True
    helpers = sys.modules.get("torchvision.tv_tensors._torch_function_helpers")
    exceptions = getattr(helpers, "_FORCE_TORCHFUNCTION_SUBCLASS", (func,))
    keeps_class = getattr(helpers, "_must_return_subclass", lambda: True)
    return kind_for(plain) is not None and func not in exceptions and not keeps_class()


def class_of(tensor: object) -> type:
    """The class of an object; of a deferred tensor, the one that it will have."""
    kind: Any = type(tensor)
    plain: type = kind.__dict__["stands_for"] if issubclass(kind, Deferred) else kind
    return plain


_were_deferred = False  # whether there ever were deferred tensors in this process


def defer(recording: Recorded, plain: type = torch.Tensor) -> torch.Tensor:
    """Returns a deferred tensor.

    Args:
        recording: what it stands for.
        plain: the class that it will have.
    """
    global _were_deferred
    _were_deferred = True
    open_patch.replace_following()
    kind = kind_for(plain)
    wrapper: Any = torch.Tensor._make_wrapper_subclass
    tensor: torch.Tensor = wrapper(
        kind, recording.shape, strides=recording.strides, dtype=recording.dtype, device="cpu"
    )
    _guard(tensor)
    tensor.__dict__[_RECORDING] = recording
    return tensor


def set_recording(tensor: torch.Tensor, recording: Recording) -> torch.Tensor:
    """Makes a deferred tensor stand for something else of the same shape and type; returns it."""
    tensor.__dict__[_RECORDING] = recording
    return tensor


def recording_of(tensor: object) -> Recording | None:
    """Returns what an image's tensor stands for; None if it has values, or its dimensions are no longer those of an
    image."""
    recorded = recorded_in(tensor)
    return recorded if type(recorded) is Recording else None


def recorded_in(tensor: object) -> Recorded | None:
    """Returns what a tensor stands for; None if it has values."""
    if not isinstance(tensor, Deferred):
        return None
    recorded: Recorded | None = tensor.__dict__.get(_RECORDING)
    return None if recorded is None or recorded.is_made else recorded


def make(tensor: Any) -> torch.Tensor:
    """Makes a deferred tensor plain, and returns it; or, while code in C++ refers to it, a plain tensor with the same
    memory."""
    recording = tensor.__dict__.get(_RECORDING)
    if recording is not None:
        recording.make_native()
    with _becoming:
        if _RECORDING not in tensor.__dict__:  # another thread was first
            return tensor  # type: ignore[no-any-return]
        values = _values_of(tensor)
        if tensor._use_count() > 1:
            return values
        # As torch.utils.swap_tensors, which refuses tensors with weak references: those are to the object, which stays.
        # The class comes last: until then other threads that use the tensor wait here.
        kind = type(tensor)
        torch._C._swap_tensor_impl(tensor, values)
        del tensor.__dict__[_RECORDING]
        tensor.__class__, values.__class__ = type(values), kind
        if recording is not None:
            recording.hand_over(tensor)
        return tensor  # type: ignore[no-any-return]


def _values_of(tensor: Any) -> torch.Tensor:
    """Returns a plain tensor over the memory of a deferred tensor's values."""
    recording: Recorded = tensor.__dict__[_RECORDING]
    made = recording.make_native()
    plain: type = type(tensor).__dict__["stands_for"]
    with plainly():
        # Where other tensors have the same memory, the versions that autograd counts are one, too.
        whole = made.detach() if recording.is_shared else made
        return whole if plain is torch.Tensor else whole.as_subclass(plain)


def make_samples(samples: Any) -> bool:
    """Makes the deferred tensors in lists, tuples and mappings plain, where they are. Returns whether there were some,
    and all could become plain."""
    if not _were_deferred:
        return False
    found = [make(one) is one for one in _deferred_in(samples)]
    return bool(found) and all(found)


def has_deferred_in(samples: Any) -> bool:
    """Whether there are deferred tensors in lists, tuples and mappings."""
    return _were_deferred and any(True for _ in _deferred_in(samples))


def _deferred_in(one: Any, seen: dict[int, object] | None = None, containers: set[int] | None = None) -> Iterator[Any]:
    """Yields the deferred tensors in lists, tuples and mappings; with `seen`, also those in attributes of objects, and
    notes these there. Each of `containers`, by id, is looked through once: they may be in themselves."""
    if isinstance(one, Deferred):
        yield one
    elif isinstance(one, (list, tuple, Mapping)):
        containers = set() if containers is None else containers
        if id(one) not in containers:
            containers.add(id(one))
            for part in one.values() if isinstance(one, Mapping) else one:
                yield from _deferred_in(part, seen, containers)
    elif seen is not None and not isinstance(one, _LEAVES) and id(one) not in seen and len(seen) < _MOST_OBJECTS:
        seen[id(one)] = one
        attributes: list[object] = []
        with contextlib.suppress(Exception):  # they may be anything
            attributes = list(vars(one).values())
        for part in attributes:
            yield from _deferred_in(part, seen, containers)


_MOST_OBJECTS = 10_000  # of a batch that are looked at
_LEAVES = (torch.Tensor, np.ndarray, Image.Image, str, bytes, int, float, type, ModuleType, FunctionType)


def make_reachable(batch: object, known: Iterable[object] = ()) -> None:
    """Makes the deferred tensors in a batch plain, also those in attributes of objects, such as a program's batches.

    A worker sends the batch from another thread, where an error would be lost.

    Args:
        known: objects in the batch that have none.
    """
    if _were_deferred:
        for one in _deferred_in(batch, {id(one): one for one in known}):
            make(one)


def is_deferring_possible() -> bool:
    """Whether nothing else looks at calls of torch in this thread: a mode, a transform of `torch.func`, inference."""
    return (
        torch._C._len_torch_function_stack() == 0
        and torch._C._len_torch_dispatch_stack() == 0
        and not torch.is_inference_mode_enabled()
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def _after_fork() -> None:
    """Another thread of the parent may have held the lock."""
    global _becoming
    _becoming = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
