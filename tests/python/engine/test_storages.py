"""The storages of delivered tensors behave as those from torch's main process or its worker processes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages
from headrace._engine.storage_pool import StoragePool
from support import pictures, train


def exchange_data(tensor: torch.Tensor) -> torch.Tensor:
    tensor.data = torch.arange(6.0)
    return tensor.sum()


ATTEMPTS = {
    "smaller": lambda t: t.resize_(2, *t.shape[1:]).sum(),
    "smaller and back": lambda t: t.resize_(1).resize_(4, 3, 8, 8).sum(),
    "larger": lambda t: t.resize_(8, *t.shape[1:]).shape,
    "freed": lambda t: t.untyped_storage().resize_(0),
    "set to another": lambda t: t.set_(torch.arange(6.0)).sum(),
    "set to nothing": lambda t: t.set_().shape,
    "data exchanged": exchange_data,
    "shared": lambda t: t.share_memory_().is_shared(),
    "resizable": lambda t: t.untyped_storage().resizable(),
}


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.parametrize("workers", [0, 2])
def test_what_can_be_done_with_a_batch(name: str, workers: int) -> None:
    """A tensor over a slot cannot grow in place: torch raises the error that it raises for tensors from its workers."""
    data = EncodedImages(pictures(4), None, train(8))
    torchs = next(iter(TorchDataLoader(data, 4, num_workers=workers)))
    images = next(iter(DataLoader(data, 4, num_workers=workers, seed=1)))
    torchs.copy_(images)
    assert outcome(ATTEMPTS[name], images) == outcome(ATTEMPTS[name], torchs)


HOLDERS = {
    "tensor": lambda t: t,
    "view": lambda t: t[1:, 0],
    "storage": lambda t: t.untyped_storage(),
    "array": lambda t: t.numpy(),
    "view of an array": lambda t: t.numpy()[1, 2],
    "memoryview": lambda t: memoryview(t.numpy()),
    "exported": lambda t: torch.utils.dlpack.from_dlpack(t),
    "graph": lambda t: torch.nn.Parameter(torch.ones(1)).mul(t),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_still_holds_a_batch_keeps_it_as_it_was(name: str) -> None:
    """Without workers, memory is reused, but not while anything refers to it."""
    loader = DataLoader(EncodedImages(pictures(24), None, train(8)), 4, num_workers=0, seed=1)
    held, copies = [], []
    for images in loader:
        copies.append(images.clone())
        held.append((HOLDERS[name](images), HOLDERS[name](copies[-1])))
    del images
    for ours, copied in held:
        if name == "graph":
            (ours,) = torch.autograd.grad(ours.sum(), [ours.grad_fn.next_functions[0][0].variable])
            (copied,) = torch.autograd.grad(copied.sum(), [copied.grad_fn.next_functions[0][0].variable])
        same = ours.tolist() == copied.tolist()
        assert same


def test_memory_is_used_again_once_nothing_holds_it() -> None:
    pool = StoragePool(2)
    address = {pool.take(1000).data_ptr() for _ in range(5)}
    assert len(address) == 1
    one, two, three = pool.take(1000), pool.take(1000), pool.take(1000)
    assert len({one.data_ptr(), two.data_ptr(), three.data_ptr()}) == 3
    assert pool.take(2000).nbytes() == 2000


def outcome(attempt: Any, tensor: torch.Tensor) -> str:
    try:
        return repr(attempt(tensor))
    except RuntimeError as error:
        return f"RuntimeError: {error}"
