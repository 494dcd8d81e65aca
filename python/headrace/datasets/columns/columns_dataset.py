"""A dataset of samples stored in arrays: one row of each."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import SupportsIndex

import torch

from headrace._base.types import Array, State
from headrace.datasets.columns import row_layout
from headrace.datasets.columns.row_layout import RowLayout


class Columns(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Rows of several arrays of any dtype: precomputed features, latents, tokens, labels.

    ``dataset[i]`` is a dict of tensors, row i of each array, copied. ``headrace.DataLoader`` delivers dicts of batches,
    ``{name: tensor (n, ...)}``: native threads copy the rows into memory that is reused, and with ``pin_memory=True``
    into pinned memory. The tensors equal those of torch's DataLoader.

    Arrays are not copied or read in advance. Of a mapped file only the pages of the requested rows are read, by all
    threads at a time; a file must not be truncated meanwhile. Rows may have any strides; contiguous rows are fastest.

    Args:
        columns: arrays by name, with the same number of rows: numpy arrays, mapped files
            (``numpy.load(path, mmap_mode="r")``), or dense CPU tensors. Their shapes must not change. Values may change
            between epochs, which changes the samples.

    Raises:
        TypeError: a value is not such an array, or torch has no tensors of its dtype (object, strings, dates).
        ValueError: there is no column, or the numbers of rows differ.
    """

    def __init__(self, columns: Mapping[str, Array | torch.Tensor]) -> None:
        if not isinstance(columns, Mapping):
            raise TypeError(f"columns must be a dict of arrays by name, not {type(columns).__name__}")
        self._given = dict(columns)
        self._columns = _check_columns(self._given)
        self._layout = row_layout.layout_of(self._columns)

    @property
    def columns(self) -> dict[str, Array | torch.Tensor]:
        """The arrays that were passed in, by name."""
        return dict(self._given)

    @property
    def checked_columns(self) -> tuple[row_layout.Column, ...]:
        """The arrays as the native path reads them."""
        return self._columns

    @property
    def layout(self) -> RowLayout:
        """Names, dtypes and shapes of a sample's values."""
        return self._layout

    def __len__(self) -> int:
        return len(self._columns[0].raw)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        place = self._place(index)
        return {one.name: one.row(place) for one in self._columns}

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, torch.Tensor]]:
        """Returns several samples; torch's DataLoader calls this once per batch."""
        places = [self._place(index) for index in indices]
        rows = {one.name: one.rows(places).unbind() for one in self._columns}
        return [{name: values[i] for name, values in rows.items()} for i in range(len(places))]

    def _place(self, index: SupportsIndex) -> int:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is out of range for a dataset of {len(self)} samples")
        return place % len(self)

    def __getstate__(self) -> State:
        # Leaves out the views, which would be pickled as second copies of the arrays.
        return {name: value for name, value in self.__dict__.items() if name != "_columns"}

    def __setstate__(self, kept: State) -> None:
        self.__dict__.update(kept, _columns=_check_columns(kept["_given"]))

    def __repr__(self) -> str:
        return f"Columns({len(self)} rows of {self._layout})"


def _check_columns(given: Mapping[str, object]) -> tuple[row_layout.Column, ...]:
    columns = tuple(row_layout.check_column(name, value) for name, value in given.items())
    if not columns:
        raise ValueError("columns is empty: there is no array to take rows from")
    first = columns[0]
    for one in columns:
        if len(one.raw) != len(first.raw):
            raise ValueError(
                f"column {one.name!r} has {len(one.raw)} rows, but column {first.name!r} has {len(first.raw)}"
            )
    return columns
