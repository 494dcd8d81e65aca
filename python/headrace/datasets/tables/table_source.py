"""Base class of the datasets whose images are a column of a table in memory, or of mapped files."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.types import Array, State
from headrace._storage.parts.sample_bytes import SampleBytes
from headrace.datasets.sources.dataset import BlobDataset, checked_mode
from headrace.datasets.sources.labels import collate
from headrace.datasets.tables.access.fetched_labels import FarLabels
from headrace.datasets.tables.access.remote_spans import FarSpans
from headrace.datasets.tables.file_spans import FileSpans
from headrace.datasets.tables.image_column import ImageColumn

_LOOKED_AT = 4096  # bytes of each image that `identity` hashes

#: A column's name, several names, or None: no labels.
LabelColumns = str | Sequence[str] | None


class Labels(Protocol):
    """The labels of a table's rows, as Python values."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> object: ...

    def take(self, indices: Sequence[int]) -> Sequence[object]:
        """Returns the labels of several rows."""


class TableSource(BlobDataset):
    """Encoded images in one column of a table, labels in others.

    Args:
        labels: an int64 array, or the labels of the rows; None: samples are images without labels.
        transform, target_transform, mode: as in `EncodedImages`.
    """

    def __init__(
        self,
        labels: Array | Labels | None,
        transform: Callable[[Any], object] | None,
        target_transform: Callable[[Any], object] | None,
        mode: str,
    ) -> None:
        if target_transform is not None and labels is None:
            raise ValueError("target_transform is given, but there are no labels: name their column as label")
        super().__init__(labels if isinstance(labels, np.ndarray) else (), transform, target_transform)
        if not isinstance(labels, np.ndarray):
            self._labels = labels  # here, because the base class may look at all of them
        self._mode = checked_mode(mode)
        self._images: ImageColumn | FileSpans | FarSpans | None = None

    def _locate(self) -> ImageColumn | FileSpans | FarSpans:
        """Returns the images' places. Called again in a process that the dataset was sent to."""
        raise NotImplementedError

    @property
    def images(self) -> ImageColumn | FileSpans | FarSpans:
        """Where the images are stored."""
        if self._images is None:
            self._images = self._locate()
        return self._images

    @property
    def mode(self) -> str:
        return self._mode

    def __len__(self) -> int:
        return len(self.images)

    def read(self, index: int) -> bytes:
        return bytes(self.images.bytes(index))

    def file(self, index: int) -> str | SampleBytes:
        return self.images.path(index) or self.images.part(index)

    def identity(self, index: int) -> str:
        if (path := self.images.path(index)) is not None:
            return "/".join(path.split("/")[-2:])
        held = self.images.bytes(index)
        return f"{len(held)} {zlib.crc32(held[:_LOOKED_AT])}"

    def location(self, index: int) -> str:
        name = self.images.name_of(index)
        return f"row {index} of column {self.images.name!r}" + (f", {name}" if name else "")

    def blob_table(self) -> core.BlobTable:
        return self.images.table()

    @property
    def ahead_bytes(self) -> int:
        return 0 if isinstance(self.images, ImageColumn) else self.images.ahead_bytes

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        if isinstance(self.images, ImageColumn):
            return 0
        return self.images.expect(indices, wait) + self.expect_targets(indices, wait)

    def expect_targets(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        return self._labels.expect(indices, wait) if isinstance(self._labels, FarLabels) else 0

    def targets_of(self, indices: npt.NDArray[np.int64]) -> object:
        if self._plain or not self.has_targets:
            return super().targets_of(indices)
        named = indices.tolist()
        labels = self._labels.take(named)
        if self.target_transform is not None:
            labels = [self.target_transform(label) for label in labels]
        return collate(tuple(labels), named, self.location)

    def __getstate__(self) -> State:
        if isinstance(self._images, FarSpans):
            return self.__dict__
        return {**self.__dict__, "_images": None}  # addresses, which mean nothing elsewhere


def checked_names(have: Sequence[str], image: str, label: LabelColumns) -> list[str]:
    """Returns the names of the columns of labels.

    Raises:
        TypeError: a name is not a string.
        ValueError: there is no such column.
    """
    names = [] if label is None else [label] if isinstance(label, str) else list(label)
    for argument, name in [("image", image), *(("label", one) for one in names)]:
        if not isinstance(name, str):
            raise TypeError(f"{argument} must be the name of a column, not {name!r}")
        if name not in have:
            without = "; label=None makes samples without labels" if argument == "label" else ""
            raise ValueError(f"{argument}={name!r} is no column; there are {', '.join(map(repr, have))}{without}")
    return names


def whole_numbers(column: Any) -> npt.NDArray[np.int64] | None:
    """Returns an Arrow column of integers without nulls as an array (n,); None for any other column."""
    import pyarrow.types as types

    if not types.is_integer(column.type) or types.is_uint64(column.type) or column.null_count > 0:
        return None
    numbers: npt.NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return numbers
