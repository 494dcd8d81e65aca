"""Datasets of shards that begin with the places of their samples: the formats of streaming (MDS) and litdata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.sources.ranges import read_range
from headrace.tables.file_spans import FileSpans, Stamp, mapped
from headrace.tables.image_column import ImageColumn
from headrace.tables.source import LabelColumns, TableSource, checked_names

#: Makes a Python value of the bytes of a column. It can be pickled.
Decoder = Callable[[bytes], Any]


class Column(NamedTuple):
    """How the values of a column are stored."""

    encoding: str
    size: int | None  # in bytes; None: it varies


class Shard(NamedTuple):
    """A file of samples."""

    path: str
    samples: int
    columns: dict[str, Column]


class ShardSource(TableSource):
    """Encoded images in a column of shards, labels in others.

    Args:
        shards: the shards, with the same columns.
        images: the encodings that are encoded images.
        decoders: what decodes the others.
        image, label, transform, target_transform, mode: as in `MDS`.

    Raises:
        OSError: a shard cannot be read.
        ValueError: a shard is damaged; a column is missing, or has an encoding that is not read.
    """

    def __init__(
        self,
        shards: list[Shard],
        images: Sequence[str],
        decoders: Mapping[str, Decoder],
        image: str,
        label: LabelColumns,
        transform: Callable[[Any], Any] | None,
        target_transform: Callable[[Any], Any] | None,
        mode: str,
    ) -> None:
        for shard in shards:
            if shard.columns != shards[0].columns:
                raise ValueError(f"{shard.path} has other columns than {shards[0].path}; all must have the same")
        self._shards, self._image = shards, image
        self._stamps = [Stamp.of(shard.path) for shard in shards]
        columns = shards[0].columns if shards else {}
        names = checked_names(list(columns), image, label)
        if (encoding := columns[image].encoding) not in images:
            raise ValueError(
                f"column {image!r} has the encoding {encoding!r}; encoded images are read from {', '.join(images)}"
            )
        for name in names:
            if (encoding := columns[name].encoding) not in decoders:
                why = "could run any code" if encoding in _PICKLES else "is not read"
                raise ValueError(f"column {name!r} has the encoding {encoding!r}, which {why}; leave it out of label")
        labels = _Labels(shards, self._stamps, names, decoders, not isinstance(label, str)) if names else None
        super().__init__(labels, transform, target_transform, mode)
        self._images = self._locate()  # finds damaged shards now

    def _check_stamps(self) -> None:
        for stamp in self._stamps:
            if Stamp.of(stamp.path) != stamp:
                raise ValueError(f"{stamp.path} has changed since the dataset was made; make a new one")

    def _locate(self) -> ImageColumn | FileSpans:
        self._check_stamps()
        found = [_places(shard, mapped(shard.path), self._image) for shard in self._shards]
        begins, sizes = (np.concatenate([one[part] for one in found] or [np.empty(0, np.int64)]) for part in (0, 1))
        which = np.repeat(np.arange(len(found)), [len(one[0]) for one in found])
        return FileSpans(self._stamps, which, begins, sizes)

    def location(self, index: int) -> str:
        number = np.searchsorted(np.cumsum([shard.samples for shard in self._shards]), index, side="right")
        return f"sample {index}, in {self._shards[number].path}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} samples in {len(self._shards)} shards)"


def number(dtype: str, data: bytes) -> Any:
    """Returns a number of a numpy dtype as Python's."""
    return np.frombuffer(data, dtype)[0].item()


def text(data: bytes) -> str:
    """Returns UTF-8 text."""
    return data.decode()


_PICKLES = ("pkl", "pickle")


class _Labels:
    """The labels of all samples, decoded when they are wanted.

    Args:
        several: whether a label is a dict of the columns' values.
    """

    def __init__(
        self,
        shards: list[Shard],
        stamps: list[Stamp],
        names: list[str],
        decoders: Mapping[str, Decoder],
        several: bool,
    ) -> None:
        self._shards, self._stamps, self._names, self._several = shards, stamps, names, several
        self._decoders = [decoders[shards[0].columns[name].encoding] for name in names]
        self._ends = np.cumsum([shard.samples for shard in shards])
        self._known: dict[int, list[Any]] = {}  # the places of the columns, by the number of the shard

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> Any:
        number = int(np.searchsorted(self._ends, index, side="right"))
        shard = self._shards[number]
        path, *stamp = self._stamps[number]
        if number not in self._known:
            read_range(path, 0, 4, tuple(stamp))  # it is still the file that was indexed
            data = mapped(path)
            self._known[number] = [_places(shard, data, name) for name in self._names]
        row = index - int(self._ends[number]) + shard.samples
        values = {}
        for name, decode, (begins, sizes) in zip(self._names, self._decoders, self._known[number], strict=True):
            values[name] = decode(read_range(path, int(begins[row]), int(sizes[row]), tuple(stamp)))
        return values if self._several else values[self._names[0]]

    def take(self, indices: Sequence[int]) -> list[Any]:
        return [self[index] for index in indices]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}


def _places(shard: Shard, data: Any, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns where a column's values begin in a shard, and their sizes: int64 (n,).

    A shard is the number of samples, their begins and the end of the last, the configuration, and the samples: the
    sizes of the columns that vary, then all columns. All numbers are uint32, little-endian.
    """
    table = 4 * (shard.samples + 2)
    count = int(np.frombuffer(data, "<u4", 1)[0]) if len(data) >= table else -1
    if count != shard.samples:
        raise ValueError(f"{shard.path} is damaged: it does not begin with the places of {shard.samples} samples")
    bounds = np.frombuffer(data, "<u4", count + 1, 4).astype(np.int64)
    varying = [column for column, (_, size) in shard.columns.items() if size is None]
    fixed = sum(size or 0 for _, size in shard.columns.values())
    rest = np.diff(bounds) - 4 * len(varying) - fixed  # bytes of the columns that vary
    if (rest < 0).any() or bounds[0] < table or bounds[-1] > len(data):
        raise ValueError(f"{shard.path} is damaged: its samples do not lie in it")
    sizes = {column: np.full(count, size or 0, np.int64) for column, (_, size) in shard.columns.items()}
    if len(varying) == 1:  # its size is what remains: no sample is touched
        sizes[varying[0]] = rest
    elif varying:
        for number, column in enumerate(varying):
            at = (bounds[:-1] + 4 * number)[:, None] + np.arange(4)
            sizes[column] = np.frombuffer(data, np.uint8)[at].view("<u4")[:, 0].astype(np.int64)
        if not np.array_equal(np.sum([sizes[column] for column in varying], axis=0), rest):
            raise ValueError(f"{shard.path} is damaged: the sizes of its columns do not add up")
    begins = bounds[:-1] + 4 * len(varying)
    for column in shard.columns:
        if column == name:
            break
        begins = begins + sizes[column]
    return begins, sizes[name]
