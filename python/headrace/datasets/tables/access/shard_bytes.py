"""The bytes of a shard that say where its samples are stored: of a mapped file, or fetched."""

from __future__ import annotations

import mmap
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headrace._storage.remote.remote_files import RemoteFiles
from headrace.datasets.tables.access.remote_reads import read_long, read_short

Int64s = npt.NDArray[np.int64]


class ShardBytes(Protocol):
    """Parts of a shard, which has `size` bytes."""

    size: int

    def head(self, length: int) -> memoryview | bytes:
        """Returns the first `length` bytes, or all if there are fewer. Raises OSError."""

    def read_at(self, begins: Int64s, length: int) -> npt.NDArray[np.uint8]:
        """Returns `length` bytes from each of `begins` on, all in the shard: uint8 (n, length). Raises OSError."""


class MappedBytes:
    """A file of this machine.

    Args:
        data: its bytes, mapped.
    """

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self._data = data
        self.size: int = len(data)

    def head(self, length: int) -> memoryview:
        return memoryview(self._data)[:length]

    def read_at(self, begins: Int64s, length: int) -> npt.NDArray[np.uint8]:
        whole: npt.NDArray[np.uint8] = np.frombuffer(self._data, np.uint8)
        found: npt.NDArray[np.uint8] = whole[begins[:, None] + np.arange(length)]
        return found


class FarBytes:
    """An object in another machine."""

    def __init__(self, files: RemoteFiles, number: int) -> None:
        assert files.stamps is not None
        self._files, self._number = files, number
        self.size: int = files.stamps[number].size

    def head(self, length: int) -> bytes:
        return read_long(self._files, self._number, 0, min(length, self.size))

    def read_at(self, begins: Int64s, length: int) -> npt.NDArray[np.uint8]:
        return read_short(self._files, self._number, begins, length)
