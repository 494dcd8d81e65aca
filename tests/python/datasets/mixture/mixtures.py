"""Mixtures that the tests share: of numbers, as columns that native threads gather, and as a Dataset of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from headrace.datasets import Columns, Mixture


class Rows(Dataset[Any]):
    """Samples {"x": number}, which torch's workers make. A million of them take no memory."""

    def __init__(self, length: int, first: int = 0) -> None:
        self._length, self._first = length, first

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> dict[str, int]:
        return {"x": self._first + index}


def columns(length: int, first: int = 0) -> Any:
    """The same samples, which headrace's threads make."""
    return Columns({"x": np.arange(first, first + length)})


def mixture(make: Callable[[int, int], Any] = columns, **options: Any) -> Mixture:
    """The number x of a sample is its index in the mixture."""
    parts = {"large": (make(100, 0), 3), "small": (make(20, 100), 1), "tiny": (make(3, 120), 0.5)}
    return Mixture(parts, **{"epoch_size": 207, **options})


def numbers(batches: Any) -> list[list[int]]:
    """The samples of batches."""
    return [batch["x"].tolist() for batch in batches]
