"""A double of an accelerator that torch pins memory for, on machines without one.

torch's iterators then take the way of `pin_memory=True`: its thread receives the batches, and calls `pin_memory()` of
what is in them. What is pinned is a copy in plain memory that the double knows.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch
from torch.overrides import handle_torch_function, has_torch_function_unary
from torch.utils.data._utils import pin_memory as torchs_pinning

from headrace._engine import columns_engine, image_engine
from headrace._engine.audio import audio_engine

DEVICE = torch.device("cuda", 0)  # of which torch asks the type and the number


class PinnedMemory:
    """Stands for an accelerator's pinned memory."""

    def __init__(self) -> None:
        # By address. They are kept, so that no other memory gets an address of theirs.
        self._storages: dict[int, torch.UntypedStorage] = {}

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether the memory of a tensor is pinned."""
        return tensor.layout is torch.strided and tensor.untyped_storage().data_ptr() in self._storages

    def pin(self, tensor: torch.Tensor, device: Any = None) -> torch.Tensor:
        """`Tensor.pin_memory`: the tensor itself or a copy with its strides, of the class that torch gives it."""
        if has_torch_function_unary(tensor):
            asked: Any = handle_torch_function(torch.Tensor.pin_memory, (tensor,), tensor)
            return asked
        if self.holds(tensor):
            return tensor
        if tensor.layout is not torch.strided:
            return tensor.clone()
        copied = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
        return self._note(copied.copy_(tensor.detach()))

    def empty(self, *size: Any, pin_memory: bool = False, **options: Any) -> torch.Tensor:
        """`torch.empty`."""
        made = torch.empty(*size, **options)
        return self._note(made) if pin_memory else made

    def _note(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr():  # there is no memory of nothing
            self._storages[storage.data_ptr()] = storage
        return tensor


class _Torch:
    """torch with the double's `empty`. In torch itself it would be seen as a function that a program has replaced."""

    def __init__(self, double: PinnedMemory) -> None:
        self.empty = double.empty

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


#: What asks for pinned memory.
ASKING = (audio_engine, columns_engine, image_engine)


@contextlib.contextmanager
def pinned_memory() -> Iterator[PinnedMemory]:
    """torch finds an accelerator meanwhile, whose pinned memory is the double's. Skips the test where this torch asks
    for one in another way, or there is one."""
    if torch.accelerator.is_available():
        pytest.skip("there is an accelerator")
    if "torch.accelerator.set_device_index" not in inspect.getsource(torchs_pinning):
        pytest.skip("this torch's iterators ask for an accelerator in another way")
    double, patched = PinnedMemory(), functools.partial(mock.patch.object, torch.accelerator)
    tensors = functools.partial(mock.patch.object, torch.Tensor)
    with contextlib.ExitStack() as stack:
        for one in (
            patched("is_available", lambda: True),
            patched("current_accelerator", lambda check_available=False: DEVICE),
            patched("current_device_index", lambda: 0),
            patched("set_device_index", lambda device: None),
            tensors("pin_memory", lambda self, device=None: double.pin(self, device)),
            tensors("is_pinned", lambda self, device=None: double.holds(self)),
            *(mock.patch.object(module, "torch", _Torch(double)) for module in ASKING),
        ):
            stack.enter_context(one)
        yield double
