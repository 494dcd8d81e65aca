"""A dataset of images that are byte ranges of larger files: shards, archives, chunks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.types import Array
from headrace._storage.local_cache.local_caches import LocalBytes, tended_bytes
from headrace._storage.parts.file_reads import read_range, stamp_of
from headrace._storage.parts.remote_bytes import RemoteBytes
from headrace._storage.parts.sample_bytes import FileBytes, SampleBytes
from headrace._storage.remote.remote_files import RemoteFiles
from headrace.datasets.sources.dataset import BlobDataset, checked_mode
from headrace.datasets.sources.packed_paths import PackedPaths

Stamps = npt.NDArray[np.int64]


class RowCheck(Protocol):
    """What else is known of the samples, which is compared with the files when these are read. It can be pickled."""

    def native(self) -> core.TarCheck:
        """Returns the check for files of this machine."""

    def marks(self) -> npt.NDArray[np.uint64]:
        """Returns what is compared of objects in other machines; see RemoteTable."""


class Ranges(BlobDataset):
    """Encoded images, each in one range of bytes of a file. Any file may hold any number of them, in any order.

    The arrays are not copied if they have the dtypes that are given here, and must not change.

    Args:
        paths: the files, or objects in other machines.
        file_of: number of each sample's file, uint32 (n,).
        offsets, lengths: first byte and number of bytes of each sample, uint64 (n,).
        labels: one per sample. None: samples are images without labels.
        transform, target_transform: as in torchvision's datasets.
        names: name of each sample within its file, for messages and for `state_dict()`. None: its offset.
        stamps: what the files were when the ranges were found, from `stamps_of`. A file with another size or time of
            modification is an error when a sample is read. None: what the files are now.
        mode: as in ``ImageFiles``.
        cache: keeps the bytes of files of this machine; objects in other machines have one of their own.
        check: compares the samples with the files; None: nothing is compared.

    Raises:
        OSError: a file cannot be found.
        ValueError: the arrays differ in length, or a path contains a zero byte.
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]] | RemoteFiles,
        file_of: npt.ArrayLike,
        offsets: npt.ArrayLike,
        lengths: npt.ArrayLike,
        labels: Sequence[object] | Array | None = None,
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        names: Sequence[str] | None = None,
        stamps: Stamps | None = None,
        mode: str = "RGB",
        cache: LocalBytes | None = None,
        check: RowCheck | None = None,
    ) -> None:
        super().__init__(labels, transform, target_transform)
        self._mode = checked_mode(mode)
        self.paths: PackedPaths
        if isinstance(paths, RemoteFiles):
            self.paths = PackedPaths(paths.shown)
            found = paths.stamps or paths.take_stamps()
            self.stamps: Stamps = np.array([(one.size, 0) for one in found], np.int64).reshape(-1, 2)
        else:
            # Absolute: the files are opened later, perhaps in another working folder.
            self.paths = PackedPaths(os.path.abspath(path) for path in paths)  # noqa: PTH100 - resolve() follows links
            self.stamps = stamps_of(self.paths) if stamps is None else np.ascontiguousarray(stamps, np.int64)
        self.file_of: npt.NDArray[np.uint32] = np.ascontiguousarray(file_of, np.uint32)
        self.offsets: npt.NDArray[np.uint64] = np.ascontiguousarray(offsets, np.uint64)
        self.lengths: npt.NDArray[np.uint64] = np.ascontiguousarray(lengths, np.uint64)
        self.names = names
        counts = {len(one) for one in (self.file_of, self.offsets, self.lengths, labels, names) if one is not None}
        if len(counts) != 1:
            raise ValueError(f"file_of, offsets, lengths, labels and names differ in length: {sorted(counts)}")
        self._remote = paths if isinstance(paths, RemoteFiles) else None
        self._cache = None if self._remote is not None else cache
        self._check, self._far, self._marks = check, None, None
        if self._remote is not None:
            self._marks = None if check is None else check.marks()
            self._far = self._remote.table(self.file_of, self.offsets, self.lengths, self._marks)

    @property
    def mode(self) -> str:
        return self._mode

    def __len__(self) -> int:
        return len(self.file_of)

    @property
    def ahead_bytes(self) -> int:
        if self._remote is None:
            return tended_bytes(self._cache)
        return self._remote.network.ahead_bytes

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        if self._cache is not None:
            self._cache.maintain_folder()
        return 0 if self._far is None else self._far.expect(indices, wait)

    def take(self, index: int) -> bytes:
        """Returns a sample's bytes, as `read` does; those in other machines through the caches."""
        return self.read(index) if self._far is None else self._far.take(index)

    def read(self, index: int) -> bytes:
        number, offset, length = int(self.file_of[index]), int(self.offsets[index]), int(self.lengths[index])
        if self._remote is not None:
            return self._remote.read(number, offset, length, 0 if self._marks is None else int(self._marks[index]))
        data = read_range(self.paths[number], offset, length, tuple(self.stamps[number].tolist()))
        self._check_member(index, number)
        return data

    def file(self, index: int) -> SampleBytes:
        number, place = int(self.file_of[index]), (int(self.offsets[index]), int(self.lengths[index]))
        if self._remote is not None:
            return RemoteBytes(self._remote, number, place, 0 if self._marks is None else int(self._marks[index]))
        made = FileBytes(self.paths[number], place, tuple(self.stamps[number].tolist()))
        self._check_member(index, number)
        return made

    def _check_member(self, index: int, number: int) -> None:
        """Raises OSError if a sample is not the one that was indexed. `number`: of its file."""
        if self._check is not None:
            try:
                self._check.native().check(index % len(self), os.fsencode(self.paths[number]))
            except OSError as error:
                raise OSError(error.errno, f"{self.location(index)}: {error.strerror}") from None

    def identity(self, index: int) -> str:
        return f"{Path(self.paths[int(self.file_of[index])]).name}:{self._name_sample(index)} {self.lengths[index]}"

    def location(self, index: int) -> str:
        return f"{self.paths[int(self.file_of[index])]}:{self._name_sample(index)}"

    def blob_table(self) -> core.BlobTable:
        if self._far is not None:
            return self._far.blobs()
        table = core.table_of_ranges(
            self.paths.packed,
            self.paths.offsets,
            self.stamps,
            self.file_of,
            self.offsets,
            self.lengths,
            None if self._check is None else self._check.native(),
        )
        return table if self._cache is None else self._cache.ranges(table)

    def _name_sample(self, index: int) -> str:
        return f"offset {self.offsets[index]}" if self.names is None else self.names[index]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} samples in {len(self.paths)} files)"


def stamps_of(paths: Iterable[str]) -> Stamps:
    """Returns the stamp of each file, int64 (n, 2). Raises OSError for a file that cannot be found."""
    return np.array([stamp_of(os.stat(path)) for path in paths], np.int64).reshape(-1, 2)  # noqa: PTH116 - by the 1,000
