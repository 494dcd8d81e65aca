"""The storages of delivered tensors: as those of tensors that come from torch's worker processes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import Blobs, DataLoader
from support import pictures, train

ATTEMPTS = {
    "smaller": lambda t: t.resize_(2, *t.shape[1:]).sum(),
    "smaller and back": lambda t: t.resize_(1).resize_(4, 3, 8, 8).sum(),
    "larger": lambda t: t.resize_(8, *t.shape[1:]).shape,
    "freed": lambda t: t.untyped_storage().resize_(0),
    "set to another": lambda t: t.set_(torch.arange(6.0)).sum(),
    "set to nothing": lambda t: t.set_().shape,
    "data exchanged": lambda t: setattr(t, "data", torch.arange(6.0)) or t.sum(),
    "shared": lambda t: t.share_memory_().is_shared(),
    "resizable": lambda t: t.untyped_storage().resizable(),
}


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.parametrize("workers", [0, 2])
def test_what_can_be_done_with_a_batch(name, workers):
    """A tensor over a slot of ours cannot grow in place: torch says so, as of a tensor from its worker processes."""
    data = Blobs(pictures(4), None, train(8))
    with_workers = next(iter(TorchDataLoader(data, 4, num_workers=2)))
    images = next(iter(DataLoader(data, 4, num_workers=workers, seed=1)))
    with_workers.copy_(images)
    assert outcome(ATTEMPTS[name], images) == outcome(ATTEMPTS[name], with_workers)


def outcome(attempt: Any, tensor: torch.Tensor) -> str:
    try:
        return repr(attempt(tensor))
    except RuntimeError as error:
        return f"RuntimeError: {error}"
