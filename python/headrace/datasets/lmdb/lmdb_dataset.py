"""LMDB databases of encoded images as a map-style dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, overload

import numpy as np

from headrace._storage.local_cache.local_caches import checked_local
from headrace._storage.parts.file_reads import stamp_of
from headrace._storage.remote.cache import Cache
from headrace.datasets.lmdb.btree_pages import Entries, Int64s, entries_of
from headrace.datasets.lmdb.lmdb_values import ImageValue, ValueReader, datum, pickled_pair, unpickle_keys
from headrace.datasets.sources.byte_ranges import Ranges

Key = bytes | str

_FINDERS: dict[str, Callable[[ValueReader], ImageValue]] = {"datum": datum, "pickle": pickled_pair}
_KEYS, _COUNT = b"__keys__", b"__len__"  # entries of the database that are no samples


class LMDB(Ranges):
    """Encoded images in an LMDB database, with random access. Samples are images, or (image, label).

    The pages of the database are read once, to find its values; then a value is one read of its bytes from the file.
    Neither the library lmdb nor its lock file is used, so any number of processes may read. The database must not be
    written to meanwhile: size and time of modification are checked after each read.

    Args:
        path: the folder of the database, or its file.
        values: what they are. ``"image"``: the bytes of image files. ``"datum"``: Caffe's `Datum` with an encoded
            image. ``"pickle"``: pickled tuples (bytes, label); nothing is unpickled, so nothing in them is run.
        label: ``"value"``: the label in the Datum or the tuple; raw images have none. None: samples are images without
            labels. A function of the key, which is bytes. A list, with a label for each sample.
        transform, target_transform: as in torchvision's datasets.
        keys: those of the samples, in their order; or a function that says which keys, in the database's order, are
            samples. None: all, in the order of the database; with tuples, that of the list in its entry ``__keys__``.
        label_key: a function of the key that returns the key of its label, a text: ``lambda key:
            key.replace(b"image", b"label")``. None: `label` holds.
        database: the name of a named database; None: the main one.
        mode: as in ``ImageFiles``.
        cache: as in ``ImageFiles``; a database that changes is an error, with or without it.

    Attributes:
        keys: the key of each sample, bytes.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no LMDB file of a 64-bit machine, it is damaged or written to; a key is not there; the
            database has several values a key; a value is not what `values` says; an argument is invalid.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        values: str = "image",
        label: str | Callable[[bytes], object] | Sequence[object] | None = "value",
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        keys: Iterable[Key] | Callable[[bytes], bool] | None = None,
        label_key: Callable[[bytes], Key] | None = None,
        database: Key | None = None,
        mode: str = "RGB",
        cache: Cache | str | os.PathLike[str] | None = None,
    ) -> None:
        if values != "image" and values not in _FINDERS:
            raise ValueError(f"values must be 'image', 'datum' or 'pickle', not {values!r}")
        if isinstance(label, str) and label != "value":
            raise ValueError(f"label must be 'value', None, a function of the key or a list, not {label!r}")
        given = Path(path)
        file = str((given / "data.mdb" if given.is_dir() else given).absolute())
        found = entries_of(file, None if database is None else as_bytes(database))
        with _Lookup(file, found) as at:
            rows = at.rows(keys, values == "pickle")
            if len(rows) == 0:
                raise ValueError(f"{file} has no entry that is a sample")
            known = EntryKeys(found, rows)
            labels: Any = label
            begins, sizes = found.offsets[rows], found.lengths[rows]
            if values != "image":
                begins, sizes, own = at.images(rows, _FINDERS[values])
                labels = own if isinstance(label, str) else label
            elif at.read(int(rows[0]), 0, 1) == b"\x80":
                raise ValueError(f"{file} holds pickles, not images; pass values='pickle'")
            elif isinstance(label, str):
                labels = None
            if label_key is not None:
                labels = at.texts([as_bytes(label_key(key)) for key in known])
            elif callable(label):
                labels = [label(key) for key in known]
        self.keys: Sequence[bytes] = known
        super().__init__(
            [file],
            np.zeros(len(rows), np.uint32),
            begins,
            sizes,
            labels,
            transform,
            target_transform,
            names=KeyTexts(known),
            stamps=np.array([found.stamp], np.int64),
            mode=mode,
            cache=checked_local(cache),
        )


class _Lookup:
    """Finds entries of a database by their keys, and reads values."""

    def __init__(self, path: str, entries: Entries) -> None:
        self._path, self.entries = path, entries
        self._file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by __exit__
        self._known: dict[bytes, int] | None = None

    def __enter__(self) -> _Lookup:
        return self

    def __exit__(self, *error: object) -> None:
        with self._file:
            if error[0] is None and stamp_of(os.fstat(self._file.fileno())) != self.entries.stamp:
                raise ValueError(f"{self._path} is being written to; make the dataset when its writer is done")

    def row(self, key: bytes) -> int:
        """Raises ValueError if there is no such key."""
        if self._known is None:
            self._known = {self.entries.key(row): row for row in range(len(self.entries.offsets))}
        if key not in self._known:
            raise ValueError(f"{self._path} has no key {format_key(key)!r}")
        return self._known[key]

    def rows(self, keys: Iterable[Key] | Callable[[bytes], bool] | None, listed: bool) -> Int64s:
        """Returns the samples' entries. `listed`: without `keys`, the list that the database holds is taken."""
        count = len(self.entries.offsets)
        if keys is None and listed:
            special = [row for row in range(count) if self.entries.key(row) in (_KEYS, _COUNT)]
            if all(self.entries.key(row) != _KEYS for row in special):
                return np.delete(np.arange(count), special)
            keys = unpickle_keys(self.read(self.row(_KEYS)))
        if keys is None:
            return np.arange(count)
        if callable(keys):
            return np.array([row for row in range(count) if keys(self.entries.key(row))], np.int64)
        return np.array([self.row(as_bytes(key)) for key in keys], np.int64)

    def read(self, row: int, begin: int = 0, size: int | None = None) -> bytes:
        """Returns bytes of a value, all from `begin` on unless `size` says how many."""
        rest = int(self.entries.lengths[row]) - begin
        at = int(self.entries.offsets[row]) + begin
        return os.pread(self._file.fileno(), rest if size is None else min(size, rest), at)

    def texts(self, keys: list[bytes]) -> list[str]:
        """Returns values that are texts. Raises ValueError for one that is not UTF-8."""
        made = []
        for key in keys:
            try:
                made.append(self.read(self.row(key)).decode())
            except UnicodeDecodeError as error:
                raise ValueError(f"the label {format_key(key)!r} in {self._path} is no text: {error}") from error
        return made

    def images(self, rows: Int64s, find: Callable[[ValueReader], ImageValue]) -> tuple[Int64s, Int64s, list[object]]:
        """Returns the places of the images in the file, their sizes, and their labels."""
        begins, sizes = self.entries.offsets[rows], self.entries.lengths[rows]
        labels = []
        for number, row in enumerate(rows.tolist()):
            try:
                found = find(ValueReader(partial(self.read, row), int(sizes[number])))
            except (ValueError, IndexError) as error:
                key = format_key(self.entries.key(row))
                raise ValueError(f"the value of the key {key!r} in {self._path} is not read: {error}") from error
            begins[number] += found.begin
            sizes[number] = found.size
            labels.append(found.label)
        return begins, sizes, labels


class EntryKeys(Sequence[bytes]):
    """The keys of some entries."""

    def __init__(self, entries: Entries, rows: Int64s) -> None:
        begins = np.concatenate([np.zeros(1, np.int64), entries.key_ends])
        self._held, self._begins, self._ends = entries.keys, begins[rows], entries.key_ends[rows]

    def __len__(self) -> int:
        return len(self._begins)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._held[self._begins[index] : self._ends[index]].tobytes()


class KeyTexts(Sequence[str]):
    """Keys as texts, for messages."""

    def __init__(self, keys: EntryKeys) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return list(map(format_key, self._keys[index])) if isinstance(index, slice) else format_key(self._keys[index])


def as_bytes(key: Key) -> bytes:
    return key.encode() if isinstance(key, str) else bytes(key)


def format_key(key: bytes) -> str:
    """Returns a key as a text without a zero byte."""
    return key.decode(errors="backslashreplace").replace("\0", "\\x00")
