"""Datasets of shards that begin with the places of their samples: the formats of streaming (MDS) and litdata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._base.types import State
from headrace._storage.parts.file_reads import read_range
from headrace._storage.remote.remote_files import Access
from headrace._storage.remote.urls import is_url, redact_url
from headrace.datasets.tables.access.fetched_labels import Decoder, FarLabels
from headrace.datasets.tables.access.remote_spans import FarSpans
from headrace.datasets.tables.access.shard_bytes import FarBytes, MappedBytes, ShardBytes
from headrace.datasets.tables.access.shard_folders import Folder
from headrace.datasets.tables.file_spans import FileSpans, Stamp, map_file
from headrace.datasets.tables.image_column import ImageColumn
from headrace.datasets.tables.table_source import LabelColumns, TableSource, checked_names

Int64s = npt.NDArray[np.int64]


class ColumnEncoding(NamedTuple):
    """How the values of a column are stored."""

    encoding: str
    size: int | None  # in bytes; None: it is written before each sample


class Shard(NamedTuple):
    """A file of samples."""

    path: str
    samples: int
    columns: dict[str, ColumnEncoding]


class ShardSource(TableSource):
    """Encoded images in a column of shards, labels in others.

    Args:
        shards: the shards, with the same columns.
        images: the encodings that are encoded images.
        decoders: what decodes the others.
        image, label, transform, target_transform, mode: as in `MDS`.
        folder: holds the shards.

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
        transform: Callable[[Any], object] | None,
        target_transform: Callable[[Any], object] | None,
        mode: str,
        folder: Folder,
    ) -> None:
        for shard in shards:
            if shard.columns != shards[0].columns:
                raise ValueError(f"{shard.path} has other columns than {shards[0].path}; all must have the same")
        self._shards, self._image, self._cache = shards, image, folder.local
        far = [is_url(shard.path) for shard in shards]
        if any(far) != all(far):
            raise ValueError("some of the shards are compressed and some are not; write them all in one way")
        self._stamps = [] if any(far) else [Stamp.of(shard.path) for shard in shards]
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
        several = not isinstance(label, str)
        if any(far) and folder.access is not None:
            used = {name: decoders[columns[name].encoding] for name in names}
            spans, values = locate_samples(shards, image, used, folder.access, several=several)
            super().__init__(values, transform, target_transform, mode)
            self._images = spans
            return
        super().__init__(
            _Labels(shards, self._stamps, names, decoders, several) if names else None,
            transform,
            target_transform,
            mode,
        )
        self._images = self._locate()  # finds damaged shards now

    def _check_stamps(self) -> None:
        for stamp in self._stamps:
            if Stamp.of(stamp.path) != stamp:
                raise ValueError(f"{stamp.path} has changed since the dataset was made; make a new one")

    def _locate(self) -> ImageColumn | FileSpans | FarSpans:
        self._check_stamps()
        found = [value_ranges(shard, MappedBytes(map_file(shard.path)), [self._image])[0] for shard in self._shards]
        begins, sizes = (np.concatenate([one[part] for one in found] or [np.empty(0, np.int64)]) for part in (0, 1))
        which = np.repeat(np.arange(len(found)), [len(one[0]) for one in found])
        return FileSpans(self._stamps, which, begins, sizes, self._cache)

    def location(self, index: int) -> str:
        number = np.searchsorted(np.cumsum([shard.samples for shard in self._shards]), index, side="right")
        return f"sample {index}, in {shown_path(self._shards[number].path)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} samples in {len(self._shards)} shards)"


def number(dtype: str, data: bytes) -> object:
    """Returns a number of a numpy dtype as Python's."""
    return np.frombuffer(data, dtype)[0].item()


def text(data: bytes) -> str:
    """Returns UTF-8 text."""
    return data.decode()


_PICKLES = ("pkl", "pickle")


def shown_path(path: str) -> str:
    """Returns a path, or a URL without credentials."""
    return redact_url(path) if is_url(path) else path


def locate_samples(
    shards: list[Shard], image: str, decoders: Mapping[str, Decoder], access: Access, *, several: bool
) -> tuple[FarSpans, FarLabels | None]:
    """Returns the images and the labels of shards in other machines.

    Args:
        decoders: of the labels, by column.

    Raises:
        OSError: a shard cannot be read.
        ValueError: it is damaged.
    """
    from tqdm import tqdm  # type: ignore[import-untyped]

    files = access.files([shard.path for shard in shards])
    names, found = [image, *decoders], []
    for number, shard in enumerate(tqdm(shards, desc="indexing", unit="shard", leave=False, disable=None)):
        found.append(value_ranges(shard, FarBytes(files, number), names))
    which = np.repeat(np.arange(len(shards)), [shard.samples for shard in shards])
    begins, sizes = (
        {name: np.concatenate([one[at][part] for one in found]) for at, name in enumerate(names)} for part in (0, 1)
    )
    spans = {name: FarSpans(files, which, begins[name], sizes[name]) for name in names}
    if not decoders:
        return spans[image], None
    labels = FarLabels({name: spans[name] for name in decoders}, decoders, len(which), several=several)
    return spans[image], labels


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
        self._known: dict[int, list[tuple[Int64s, Int64s]]] = {}  # by shard: the places of the columns

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> Any:
        number = int(np.searchsorted(self._ends, index, side="right"))
        shard = self._shards[number]
        path, *stamp = self._stamps[number]
        if number not in self._known:
            read_range(path, 0, 4, tuple(stamp))  # it is still the file that was indexed
            self._known[number] = value_ranges(shard, MappedBytes(map_file(path)), self._names)
        row = index - int(self._ends[number]) + shard.samples
        values = {}
        for name, decode, (begins, sizes) in zip(self._names, self._decoders, self._known[number], strict=True):
            values[name] = decode(read_range(path, int(begins[row]), int(sizes[row]), tuple(stamp)))
        return values if self._several else values[self._names[0]]

    def take(self, indices: Sequence[int]) -> list[object]:
        return [self[index] for index in indices]

    def __getstate__(self) -> State:
        return {**self.__dict__, "_known": {}}


def value_ranges(shard: Shard, held: ShardBytes, names: Sequence[str]) -> list[tuple[Int64s, Int64s]]:
    """Returns where the values of some columns begin in a shard, and their sizes: int64 (n,).

    A shard is the number of samples, their begins and the end of the last, the configuration, and the samples: the
    sizes of the columns that vary, then all columns. All numbers are uint32, little-endian.

    Raises:
        OSError: the shard cannot be read.
        ValueError: it is damaged.
    """
    path, table = shown_path(shard.path), 4 * (shard.samples + 2)
    head = held.head(table)
    count = int(np.frombuffer(head, "<u4", 1)[0]) if len(head) >= table else -1
    if count != shard.samples:
        raise ValueError(f"{path} is damaged: it does not begin with the places of {shard.samples} samples")
    bounds = np.frombuffer(head, "<u4", count + 1, 4).astype(np.int64)
    varying = [column for column, one in shard.columns.items() if one.size is None]
    fixed = sum(one.size or 0 for one in shard.columns.values())
    rest = np.diff(bounds) - 4 * len(varying) - fixed  # bytes of the columns that vary
    if (rest < 0).any() or bounds[0] < table or bounds[-1] > held.size:
        raise ValueError(f"{path} is damaged: its samples are not within it")
    sizes = {column: np.full(count, one.size or 0, np.int64) for column, one in shard.columns.items()}
    if len(varying) == 1:  # its size is what remains: no sample is touched
        sizes[varying[0]] = rest
    elif varying:
        written = held.read_at(bounds[:-1], 4 * len(varying)).view("<u4")
        for number, column in enumerate(varying):
            sizes[column] = written[:, number].astype(np.int64)
        if not np.array_equal(np.sum([sizes[column] for column in varying], axis=0), rest):
            raise ValueError(f"{path} is damaged: the sizes of its columns do not add up")
    begins, at = {}, bounds[:-1] + 4 * len(varying)
    for column in shard.columns:
        begins[column] = at
        at = at + sizes[column]
    return [(begins[name], sizes[name]) for name in names]
