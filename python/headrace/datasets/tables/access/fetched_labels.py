"""The labels of samples in other machines, fetched with the images and decoded when they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from headrace.datasets.tables.access.remote_spans import FarSpans

#: Makes a Python value of the bytes of a column. It can be pickled.
Decoder = Callable[[bytes], object]


class FarLabels:
    """The values of columns. Can be pickled.

    Args:
        tables: where each column's values are stored, by name.
        decoders: of the columns, by name.
        several: whether a label is a dict of the columns' values; otherwise it is the value of the only one.
    """

    def __init__(
        self, tables: Mapping[str, FarSpans], decoders: Mapping[str, Decoder], samples: int, *, several: bool
    ) -> None:
        self._tables, self._decoders, self._samples, self._several = dict(tables), dict(decoders), samples, several

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> object:
        values = {name: self._decoders[name](table.take(int(index))) for name, table in self._tables.items()}
        return values if self._several else values[next(iter(values))]

    def take(self, indices: Sequence[int]) -> list[object]:
        rows = np.asarray(indices, np.int64)
        self.expect(rows)
        return [self[index] for index in indices]

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        """Begins to fetch labels and returns their number of bytes."""
        return sum(table.expect(indices, wait) for table in self._tables.values())
