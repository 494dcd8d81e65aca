"""Where the native path finds the rows of a dataset of columns: `Columns`, and Subset and ConcatDataset of these."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch.utils.data import ConcatDataset, Subset

from headrace._base.native import core
from headrace.datasets.columns.columns_dataset import Columns
from headrace.datasets.columns.row_layout import RowLayout
from headrace.datasets.sources.override_checks import NotNative, check_length, check_samples, makes_samples_as
from headrace.datasets.sources.recognition.torch_combined import (
    FollowedConcat,
    FollowedSubset,
    check_taken,
    counted_parts,
    subset_rows,
)

Int64s = npt.NDArray[np.int64]

_LOOKED_AT = 100  # rows that `fingerprint` hashes
_ELEMENTS = 32  # elements of each of them


class ColumnSource:
    """Rows of one or more `Columns`, in a given order.

    Args:
        dataset: the dataset with these rows.
        parts: datasets of the same layout, one after the other.
        rows: number of each sample's row in the concatenation of the parts; None: all rows in order.
    """

    has_targets = False  # a sample is one dict; nothing is collated in Python

    def __init__(self, dataset: object, parts: tuple[Columns, ...], rows: Int64s | None = None) -> None:
        self.dataset = dataset
        self.parts = parts
        self.rows = rows
        self._ends = np.cumsum([len(part) for part in parts])
        self._follows = _follow_dataset(dataset)
        self._order = object()  # stands for parts and rows in `storage_identity`

    @property
    def layout(self) -> RowLayout:
        """Layout of the rows of all parts."""
        return self.parts[0].layout

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.rows is None else len(self.rows)

    def is_current(self) -> bool:
        """Returns whether the dataset still consists of the same objects, which name the same rows."""
        return all(one.is_current() for one in self._follows)

    def holds(self, indices: Sequence[int]) -> bool:
        """Returns whether the dataset still has the same rows at these indices; False may be wrong."""
        outer, *inner = self._follows
        named = outer.holds(indices) if isinstance(outer, FollowedSubset) else outer.is_current()
        return named and all(one.is_current() for one in inner)

    @property
    def storage_identity(self) -> object:
        """What compares equal for two sources if their rows are stored at the same places."""
        return self._order

    def frozen(self, before: object = None) -> ColumnSource:
        """Returns this source: it has no labels in Python."""
        return self

    def location(self, index: int) -> str:
        """Returns where a sample is stored, for messages."""
        part, row = self._find_row(index)
        return f"row {row} of {part!r}"

    def part_location(self, part: str, index: int) -> str:
        """Returns where a part of a sample is stored; a row has none."""
        return self.location(index)

    def metadata(self, index: int) -> dict[object, object]:
        """Returns nothing: rows have no metadata."""
        return {}

    def target(self, index: int) -> object:
        """Raises TypeError: there are no targets."""
        raise TypeError("rows of columns have no targets")

    def numbers(self, indices: Int64s) -> Int64s | None:
        """Returns None: there are no targets."""
        return None

    def targets_of(self, indices: Int64s) -> object:
        """Raises TypeError: there are no targets."""
        raise TypeError("rows of columns have no targets")

    def sample_of(self, made: object, index: int) -> object:
        """Returns the sample that ``dataset[index]`` would be: `made`."""
        return made

    def batch_of(self, images: object, targets: object) -> object:
        """Raises TypeError: there are no targets."""
        raise TypeError("rows of columns have no targets")

    def fingerprint(self) -> str:
        """Returns a hash of the layout, the number of samples and the beginnings of up to 100 rows, 16 hex digits."""
        digest = hashlib.sha256(repr((len(self), str(self.layout))).encode())
        for place in np.unique(np.linspace(0, len(self) - 1, _LOOKED_AT).astype(np.int64)).tolist():
            part, row = self._find_row(place)
            for column in part.checked_columns:
                digest.update(column.beginning(row, _ELEMENTS))
        return digest.hexdigest()[:16]

    @property
    def ahead_bytes(self) -> int:
        """Returns 0: rows are in this machine."""
        return 0

    def expect(self, indices: Int64s, wait: bool = False) -> int:
        """Returns 0: there is nothing to fetch."""
        return 0

    def blob_table(self) -> core.BlobTable:
        """Returns the native core's table of rows; row i belongs to sample i."""
        tables = [core.table_of_columns([column.raw for column in part.checked_columns]) for part in self.parts]
        table = tables[0] if len(tables) == 1 else core.BlobTable.of_parts(tables)
        return table if self.rows is None else core.BlobTable.of_rows(table, self.rows)

    def _find_row(self, index: int) -> tuple[Columns, int]:
        row = index if self.rows is None else int(self.rows[index])
        number = int(np.searchsorted(self._ends, row, side="right"))
        return self.parts[number], row - int(self._ends[number]) + len(self.parts[number])

    def __repr__(self) -> str:
        whole = " + ".join(map(repr, self.parts))
        return whole if self.rows is None else f"{len(self)} samples of {whole}"


def as_columns(dataset: object) -> ColumnSource | None:
    """Returns the source of a dataset of columns; None for any other dataset.

    Raises:
        NotNative: a class overrides how its samples are made, an index of a Subset is out of range, or the parts of a
            ConcatDataset have different columns.
    """
    if isinstance(dataset, Columns):
        check_samples(dataset, Columns)
        check_length(dataset)
        return ColumnSource(dataset, (dataset,))
    if isinstance(dataset, Subset):
        base = as_columns(dataset.dataset)
        if base is None:
            return None
        check_samples(dataset, Subset)
        rows = subset_rows(dataset, len(base))
        return ColumnSource(dataset, base.parts, rows if base.rows is None else base.rows[rows])
    if isinstance(dataset, ConcatDataset):
        found = [as_columns(part) for part in dataset.datasets]
        parts = [part for part in found if part is not None]
        if not parts:
            return None
        check_samples(dataset, ConcatDataset)
        if len(parts) < len(found):
            raise NotNative("the ConcatDataset joins columns with another dataset; join only columns")
        counted = counted_parts(dataset)
        return _join_sources(dataset, [_take_first(one, count) for one, (_, count) in zip(parts, counted, strict=True)])
    return None


def _join_sources(dataset: ConcatDataset[object], sources: list[ColumnSource]) -> ColumnSource:
    layout = sources[0].layout
    for one in sources:
        if one.layout != layout:
            raise NotNative(f"the ConcatDataset joins columns of different layouts: {layout} and {one.layout}")
    parts = tuple(part for one in sources for part in one.parts)
    if all(one.rows is None for one in sources):
        return ColumnSource(dataset, parts)
    begins = np.cumsum([0, *(int(one._ends[-1]) for one in sources)])
    rows = [
        begin + (np.arange(len(one)) if one.rows is None else one.rows)
        for begin, one in zip(begins, sources, strict=False)
    ]
    return ColumnSource(dataset, parts, np.concatenate(rows))


def _take_first(source: ColumnSource, count: int) -> ColumnSource:
    """Returns the first samples of a source: a ConcatDataset takes as many as there were when it was made."""
    check_taken(len(source), count)
    if len(source) == count:
        return source
    return ColumnSource(source.dataset, source.parts, np.arange(count) if source.rows is None else source.rows[:count])


class _Plain:
    """A `Columns`, whose arrays cannot be exchanged."""

    def __init__(self, columns: object) -> None:
        self._columns = columns

    def is_current(self) -> bool:
        return makes_samples_as(self._columns, Columns)


def _follow_dataset(dataset: object) -> list[FollowedSubset | FollowedConcat | _Plain]:
    """Returns what the dataset and those inside it held, outermost first."""
    if isinstance(dataset, Subset):
        return [FollowedSubset(dataset), *_follow_dataset(dataset.dataset)]
    if isinstance(dataset, ConcatDataset):
        return [FollowedConcat(dataset), *(one for part in dataset.datasets for one in _follow_dataset(part))]
    return [_Plain(dataset)]
