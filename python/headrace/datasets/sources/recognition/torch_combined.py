"""torch's datasets that combine others, as sources: Subset (also made by random_split) and ConcatDataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import ConcatDataset, Subset

from headrace.datasets.sources.combined import ConcatSource, SubsetSource
from headrace.datasets.sources.dataset import BlobDataset
from headrace.datasets.sources.held_values import Held
from headrace.datasets.sources.override_checks import NotNative, check_samples, makes_samples_as

AsSource = Callable[[object], BlobDataset]


class _Subset(SubsetSource):
    def __init__(self, subset: Subset[object], base: BlobDataset, before: object) -> None:
        self._follows = FollowedSubset(subset)
        super().__init__(base, subset_rows(subset, len(base)))
        if isinstance(before, _Subset) and np.array_equal(before.rows, self.rows):
            self.rows, self._order = before.rows, before._order

    def is_current(self) -> bool:
        return self._follows.is_current() and super().is_current()

    def holds(self, indices: Sequence[int]) -> bool:
        return self._follows.holds(indices) and super().holds(indices)

    def known_sources(self) -> dict[int, BlobDataset]:
        return {**super().known_sources(), id(self._follows.subset): self}


class _Concat(ConcatSource):
    def __init__(self, concat: ConcatDataset[object], parts: list[BlobDataset]) -> None:
        super().__init__(parts)
        self._follows = FollowedConcat(concat)

    def is_current(self) -> bool:
        return self._follows.is_current() and super().is_current()

    def holds(self, indices: Sequence[int]) -> bool:
        return self._follows.is_current() and super().holds(indices)


class FollowedSubset:
    """A Subset, and what it held when a source was made of it.

    Args:
        subset: the dataset.
    """

    def __init__(self, subset: Subset[object]) -> None:
        self.subset = subset
        self._dataset, self._indices = subset.dataset, Held(_as_comparable(subset.indices))

    def is_current(self) -> bool:
        """Returns whether it holds the same dataset and indices."""
        now = self.subset
        same = now.dataset is self._dataset and makes_samples_as(now, Subset)
        return same and self._indices.is_held(_as_comparable(now.indices))

    def holds(self, indices: Sequence[int]) -> bool:
        """Returns whether it holds the same dataset, and the same indices at these places; False may be wrong."""
        now = self.subset
        same = now.dataset is self._dataset and makes_samples_as(now, Subset)
        return same and self._indices.rows_are_held(_as_comparable(now.indices), indices)


class FollowedConcat:
    """A ConcatDataset, and what it held when a source was made of it.

    Args:
        concat: the dataset.
    """

    def __init__(self, concat: ConcatDataset[object]) -> None:
        self._concat, self._datasets = concat, Held(concat.datasets)
        self._sizes = Held(concat.cumulative_sizes)

    def is_current(self) -> bool:
        """Returns whether it holds the same datasets, with the same number of samples of each."""
        now = self._concat
        same = self._sizes.is_held(now.cumulative_sizes) and makes_samples_as(now, ConcatDataset)
        return same and self._datasets.rows_are_held(now.datasets, range(len(self._datasets.then)))


def _as_comparable(indices: object) -> object:
    """Returns the indices of a Subset; as an array if they are an object of another library."""
    return indices if isinstance(indices, (list, tuple, range, np.ndarray, torch.Tensor)) else np.asarray(indices)


def subset(dataset: object, as_source: AsSource, before: object) -> BlobDataset | None:
    """Returns the source of a Subset; None for any other dataset.

    Args:
        as_source: returns the source of the inner dataset.
        before: the source of the same Subset before it changed, or None.

    Raises:
        NotNative: the inner dataset is not native, or an index is not an integer or out of range.
    """
    if not isinstance(dataset, Subset):
        return None
    check_samples(dataset, Subset)
    return _Subset(dataset, as_source(dataset.dataset), before)


def subset_rows(dataset: Subset[object], length: int) -> npt.NDArray[np.int64]:
    """Returns the indices of a Subset, int64 (n,), each in [0, length).

    Args:
        length: number of samples in the inner dataset.

    Raises:
        NotNative: an index is not an integer or out of range.
    """
    indices = dataset.indices
    try:
        rows = np.asarray(indices)
        whole = rows.ndim == 1 and (not rows.size or rows.dtype.kind in "iu") and _are_indices(indices)
    except Exception:  # lists of different lengths
        whole = False
    if not whole:
        raise NotNative("the Subset's indices are not whole numbers; give it a list of whole numbers")
    rows = rows.astype(np.int64)
    outside = rows[(rows < -length) | (rows >= length)]
    if outside.size:
        raise NotNative(f"the Subset names index {outside[0]} of a dataset of {length} samples; correct its indices")
    return np.where(rows < 0, rows + length, rows)


def _are_indices(indices: Any) -> bool:
    """Whether each of the indices names one sample of any dataset: True and bytes of a tensor are masks for some."""
    if isinstance(indices, torch.Tensor):
        return indices.dtype in (torch.int64, torch.int32)
    if isinstance(indices, (np.ndarray, range)):
        return True
    return all(
        kind is int or issubclass(kind, np.integer) or (kind is torch.Tensor and np.asarray(indices).dtype != np.uint8)
        for kind in set(map(type, indices))
    )


def concat(dataset: object, as_source: AsSource, before: object) -> BlobDataset | None:
    """Returns the source of a ConcatDataset; None for any other dataset.

    Args:
        as_source: returns the source of a part.
        before: the source of the same ConcatDataset before it changed, or None.

    Raises:
        NotNative: a part is not native, has fewer samples than the ConcatDataset takes from it, or only some of the
            parts have labels.
    """
    if not isinstance(dataset, ConcatDataset):
        return None
    check_samples(dataset, ConcatDataset)
    parts = [_take_first(as_source(part), count) for part, count in counted_parts(dataset)]
    if any(part.has_targets != parts[0].has_targets for part in parts):
        raise NotNative("some datasets of the ConcatDataset have labels and others have none; give all of them labels")
    return _Concat(dataset, parts)


def counted_parts(dataset: ConcatDataset[object]) -> list[tuple[object, int]]:
    """Returns the parts of a ConcatDataset with the number of samples that it takes from each: as many as the part had
    when the ConcatDataset was made.

    Raises:
        NotNative: these numbers do not belong to the parts.
    """
    sizes, parts = dataset.cumulative_sizes, dataset.datasets
    if not isinstance(sizes, list) or not isinstance(parts, list) or not parts or len(sizes) != len(parts):
        raise NotNative("cumulative_sizes of the ConcatDataset does not fit its datasets; make a new ConcatDataset")
    counts = np.diff(np.asarray(sizes), prepend=0)
    if counts.dtype.kind not in "iu" or counts.ndim != 1 or counts.min() < 0:
        raise NotNative("cumulative_sizes of the ConcatDataset are no sums of lengths; make a new ConcatDataset")
    return list(zip(parts, counts.tolist(), strict=True))


def _take_first(part: BlobDataset, count: int) -> BlobDataset:
    check_taken(len(part), count)
    return part if len(part) == count else SubsetSource(part, np.arange(count))


def check_taken(samples: int, count: int) -> None:
    """Raises NotNative if a ConcatDataset takes more samples of a part than there are."""
    if samples < count:
        raise NotNative(
            f"the ConcatDataset takes {count} samples of a dataset of {samples}, which had more; make a new one"
        )
