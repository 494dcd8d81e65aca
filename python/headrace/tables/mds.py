"""Shards of MosaicML's streaming library (MDS) as a dataset, mapped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.tables.arrow import Stamp
from headrace.tables.mapped_spans import MappedSpans, mapped
from headrace.tables.source import LabelColumns, TableSource, checked_names

_IMAGES = ("jpeg", "png", "bytes")
_NUMBERS = {"int": "<i8"} | {
    f"{kind}{8 * size}": f"<{letter}{size}"
    for kind, letter, sizes in (("uint", "u", (1, 2, 4, 8)), ("int", "i", (1, 2, 4, 8)), ("float", "f", (2, 4, 8)))
    for size in sizes
}
_VALUES: dict[str, Callable[[bytes], Any]] = {
    "str": lambda data: data.decode(),
    "str_int": lambda data: int(data.decode()),
    "str_float": lambda data: float(data.decode()),
    "json": lambda data: json.loads(data),
    "bytes": bytes,
}


class MDS(TableSource):
    """Encoded images in shards that MosaicML's `MDSWriter` wrote. Samples are (image, label).

    The shards are mapped into memory, and images are decoded where they lie. A shard that is truncated while it is
    mapped ends the process.

    Args:
        folder: a local folder with ``index.json`` and its shards.
        image: the column of images, of the encodings jpeg, png or bytes.
        label: the column of labels: numbers, text or JSON, as Python values. A list of names: dicts of the columns'
            values. None: samples are images without labels.
        transform, target_transform, mode: as in `Blobs`.

    Raises:
        OSError: the index or a shard cannot be read.
        ValueError: the index or a shard is damaged, compressed or of another format; a column is missing, or has an
            encoding that is not read: ``pkl`` could run any code.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        image: str,
        label: LabelColumns = None,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        *,
        mode: str = "RGB",
    ) -> None:
        self.folder = Path(folder).absolute()
        self._shards = _shards(self.folder)
        self._stamps = [Stamp.of(shard.path) for shard in self._shards]
        columns = self._shards[0].columns if self._shards else {}
        names = checked_names(list(columns), image, label)
        _check_encodings(columns, image, names)
        self._image = image
        labels = _Labels(self._shards, names, not isinstance(label, str)) if names else None
        super().__init__(labels, transform, target_transform, mode)
        self._images = self._locate()  # finds damaged shards now

    def _locate(self) -> MappedSpans:
        for stamp in self._stamps:
            if Stamp.of(stamp.path) != stamp:
                raise ValueError(f"{stamp.path} has changed since the dataset was made; make a new one")
        files = [(shard.path, mapped(shard.path)) for shard in self._shards]
        found = [_places(shard, data, self._image) for shard, (_, data) in zip(self._shards, files, strict=True)]
        begins, sizes = (np.concatenate([one[part] for one in found] or [np.empty(0, np.int64)]) for part in (0, 1))
        return MappedSpans(files, np.repeat(np.arange(len(files)), [len(one[0]) for one in found]), begins, sizes)

    def location(self, index: int) -> str:
        return f"sample {index}, in {self.images.name_of(index)}"

    def __repr__(self) -> str:
        return f"MDS({str(self.folder)!r}, {len(self)} samples in {len(self._shards)} shards)"


class _Column(NamedTuple):
    encoding: str
    size: int | None  # in bytes; None: it varies


class _Shard(NamedTuple):
    path: str
    samples: int
    columns: dict[str, _Column]


class _Labels:
    """The labels of all samples, decoded when they are wanted.

    Args:
        several: whether a label is a dict of the columns' values.
    """

    def __init__(self, shards: list[_Shard], names: list[str], several: bool) -> None:
        self._shards, self._names, self._several = shards, names, several
        self._ends = np.cumsum([shard.samples for shard in shards])
        self._open: dict[int, tuple[Any, list[Any]]] = {}  # by the number of the shard

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, index: int) -> Any:
        number = int(np.searchsorted(self._ends, index, side="right"))
        shard = self._shards[number]
        if number not in self._open:
            data = mapped(shard.path)
            self._open[number] = data, [_places(shard, data, name) for name in self._names]
        row = index - int(self._ends[number]) + shard.samples
        data, places = self._open[number]
        values = {}
        for name, (begins, sizes) in zip(self._names, places, strict=True):
            begin = int(begins[row])
            values[name] = _decoded(shard.columns[name].encoding, data[begin : begin + int(sizes[row])])
        return values if self._several else values[self._names[0]]

    def take(self, indices: Sequence[int]) -> list[Any]:
        return [self[index] for index in indices]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}


def _decoded(encoding: str, data: bytes) -> Any:
    return np.frombuffer(data, _NUMBERS[encoding])[0].item() if encoding in _NUMBERS else _VALUES[encoding](data)


def _shards(folder: Path) -> list[_Shard]:
    """Reads the index of a folder."""
    index = folder / "index.json"
    try:
        held = json.loads(index.read_bytes())
        shards = [_shard(folder, one) for one in held["shards"]]
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{index} is no index of MDS shards, or it is damaged: {error!r}") from error
    for shard in shards:
        if shard.columns != shards[0].columns:
            raise ValueError(f"{shard.path} has other columns than {shards[0].path}; all shards must have the same")
    return shards


def _shard(folder: Path, held: dict[str, Any]) -> _Shard:
    if held["format"] != "mds" or held["version"] != 2:
        raise ValueError(f"{folder} has shards of format {held['format']!r} {held['version']}; mds, version 2, is read")
    name = held["raw_data"]["basename"]
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"the index of {folder} names {name!r}, which is not in the folder")
    path = folder / name
    if held["compression"] and not path.exists():
        raise ValueError(
            f"the shards of {folder} are compressed ({held['compression']}); decompress them first, or let streaming "
            "keep its decompressed copies"
        )
    columns = zip(held["column_names"], map(_Column, held["column_encodings"], held["column_sizes"]), strict=True)
    return _Shard(str(path), int(held["samples"]), dict(columns))


def _check_encodings(columns: dict[str, _Column], image: str, labels: list[str]) -> None:
    if (encoding := columns[image].encoding) not in _IMAGES:
        raise ValueError(
            f"column {image!r} has the encoding {encoding!r}; encoded images are read from {', '.join(_IMAGES)}"
        )
    for name in labels:
        if (encoding := columns[name].encoding) not in _NUMBERS and encoding not in _VALUES:
            why = "could run any code" if encoding == "pkl" else "is not read"
            raise ValueError(f"column {name!r} has the encoding {encoding!r}, which {why}; leave it out of label")


def _places(shard: _Shard, data: Any, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
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
