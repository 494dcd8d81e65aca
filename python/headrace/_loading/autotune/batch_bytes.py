"""The memory of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def bytes_of(batch: Any) -> int:
    """Returns the bytes of the tensors in a batch of nested lists, tuples and dicts."""
    if isinstance(batch, torch.Tensor):
        return batch.nbytes
    if isinstance(batch, Mapping):
        return sum(bytes_of(one) for one in batch.values())
    if isinstance(batch, (list, tuple)):
        return sum(bytes_of(one) for one in batch)
    return 0
