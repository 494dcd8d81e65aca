"""Comparisons of batches of clips and labels."""

from __future__ import annotations

import pickle
from typing import Any

import torch

from headrace import DataLoader, Videos


def assert_equal_batches(loader: Any, expected: Any) -> int:
    """Compares all batches and returns how many there are."""
    count = 0
    for (clips, labels), (theirs, its) in zip(loader, expected, strict=True):
        assert clips.dtype == theirs.dtype and clips.shape == theirs.shape
        assert torch.equal(clips, theirs) and torch.equal(labels, its), count
        count += 1
    return count


def assert_resumed(data: Videos, options: dict[str, Any]) -> None:
    """Compares the last two of three batches with those of a loader that goes on from the state after the first: of a
    copy of the dataset, with another number of threads."""
    loader: Any = DataLoader(data, num_workers=2, **options)
    epoch = iter(loader)
    next(epoch)
    state, rest = loader.state_dict(), list(epoch)
    resumed: Any = DataLoader(pickle.loads(pickle.dumps(data)), num_workers=1, **options)
    resumed.load_state_dict(state)
    assert assert_equal_batches(resumed, rest) == 2
