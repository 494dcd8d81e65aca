"""torch's datasets that combine others, as sources: Subset (also made by random_split) and ConcatDataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch.utils.data import ConcatDataset, Subset

from headrace.sources.combined import Joined, Selection
from headrace.sources.dataset import BlobDataset
from headrace.sources.unchanged import NotNative, check_samples

AsSource = Callable[[Any], BlobDataset]


class _Subset(Selection):
    def __init__(self, subset: Subset[Any], base: BlobDataset, rows: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        super().__init__(base, rows)
        self._subset, self._held = subset, (subset.dataset, subset.indices, len(subset.indices))

    def is_current(self) -> bool:
        dataset, indices, count = self._held
        now = self._subset
        return super().is_current() and now.dataset is dataset and now.indices is indices and len(indices) == count


class _Concat(Joined):
    def __init__(self, concat: ConcatDataset[Any], parts: list[BlobDataset]) -> None:
        super().__init__(parts)
        self._concat, self._held = concat, list(concat.datasets)

    def is_current(self) -> bool:
        now = self._concat.datasets
        same = len(now) == len(self._held) and all(a is b for a, b in zip(now, self._held, strict=True))
        return same and super().is_current()


def subset(dataset: Any, as_source: AsSource) -> BlobDataset | None:
    """Returns the source of a Subset; None for any other dataset.

    Raises:
        NotNative: the inner dataset is not native, or an index is not an integer or out of range.
    """
    if not isinstance(dataset, Subset):
        return None
    check_samples(type(dataset), Subset)
    base = as_source(dataset.dataset)
    return _Subset(dataset, base, subset_rows(dataset, len(base)))


def subset_rows(dataset: Subset[Any], length: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the indices of a Subset, int64 (n,), each in [0, length).

    Args:
        length: number of samples in the inner dataset.

    Raises:
        NotNative: an index is not an integer or out of range.
    """
    rows = np.asarray(dataset.indices)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise NotNative("the Subset's indices are not whole numbers; give it a list of whole numbers")
    rows = rows.astype(np.int64)
    outside = rows[(rows < -length) | (rows >= length)]
    if outside.size:
        raise NotNative(f"the Subset names index {outside[0]} of a dataset of {length} samples; correct its indices")
    return np.where(rows < 0, rows + length, rows)


def concat(dataset: Any, as_source: AsSource) -> BlobDataset | None:
    """Returns the source of a ConcatDataset; None for any other dataset.

    Raises:
        NotNative: a part is not native, or only some of the parts have labels.
    """
    if not isinstance(dataset, ConcatDataset):
        return None
    check_samples(type(dataset), ConcatDataset)
    parts = [as_source(part) for part in dataset.datasets]
    if any(part.has_targets != parts[0].has_targets for part in parts):
        raise NotNative("some datasets of the ConcatDataset have labels and others have none; give all of them labels")
    return _Concat(dataset, parts)
