"""A sample's encoded bytes, of which parts are read: those of a file, of a range of one, or in memory."""

from __future__ import annotations

import functools
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from headrace._base.lifetimes.finalizers import Ending
from headrace._storage.parts.file_reads import Span as Span
from headrace._storage.parts.file_reads import check_stamp, read_part
from headrace._storage.parts.span_file import SpanFile

_S = 1_000_000_000  # ns
_TICK_NS = 100_000_000  # more than the time between two ticks of the clock of a file system


class SampleBytes(ABC):
    """Encoded bytes, of which parts are read. For one thread.

    Attributes:
        size: number of bytes; of what is far, known once it is open.
        key: equal for equal bytes in this process; of what is in memory, the owner sets it.
        is_far: whether they are in another machine, so that each read costs a request.
        keeps_all: whether what is read stays in a cache, so that reading parts which others will need costs nothing.
    """

    size: int
    key: Hashable = None
    is_far = False
    keeps_all = False

    @property
    def lasting_key(self) -> str | None:
        """What `key` is, for other processes and later runs; None: nothing names these bytes there. It may hold
        credentials, so it is hashed, and not shown."""
        return None

    def open(self, is_over: Callable[[], bool]) -> None:
        """Called before parts are read.

        Args:
            is_over: whether the parts are no longer needed; a read that takes long asks it, and raises OSError.

        Raises:
            OSError: they cannot be read.
        """
        return None

    def check_wanted(self) -> None:
        """Raises OSError if the parts are no longer needed. For a thread that waits for another one."""
        return None

    @abstractmethod
    def read(self, position: int, count: int) -> bytes:
        """Returns `count` bytes from a position on, fewer at the end. Raises OSError."""

    def fetch(self, spans: Sequence[Span]) -> None:
        """Reads spans that will be wanted, at the same time, if each read costs a request. Raises OSError."""
        return None

    def check(self) -> None:
        """Raises OSError if they are not what an index of their archive says; of what is far, by a request."""
        return None

    @property
    def path(self) -> str | None:
        """A file that consists of these bytes; None: there is none."""
        return None


class FileBytes(SampleBytes, Ending):
    """A file of this machine, or a range of one. It stays open: it may be removed before parts are read.

    Args:
        path: of the file.
        place: the first byte, and the number of bytes; None: the whole file.
        stamp: size, and time of modification in ns, that the file must have, now and after each read; None: any.

    Attributes:
        status: of the file.

    Raises:
        OSError: it cannot be opened, or is not the file of the stamp.
    """

    def __init__(self, path: str, place: Span | None = None, stamp: tuple[int, ...] | None = None) -> None:
        self._path, self._place, self._stamp = path, place, stamp
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.at_end = functools.partial(os.close, self._descriptor)
        self.status: os.stat_result = os.fstat(self._descriptor)
        found = self.status
        self._sample = place or (0, found.st_size)
        self.size = self._sample[1]
        if stamp is not None:
            check_stamp(found, path, self._sample, stamp)
        self.key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, place)

    @property
    def lasting_key(self) -> str | None:
        """None of a file that was changed just now: the clock of its times may not tell a next change from that."""
        newest = max(self.status.st_mtime_ns, self.status.st_ctime_ns)
        is_coarse = newest % _S == 0  # some file systems count seconds
        return None if time.time_ns() - newest < (2 * _S if is_coarse else _TICK_NS) else repr(("file", self.key))

    def read(self, position: int, count: int) -> bytes:
        part = position, max(0, min(count, self.size - position))
        return read_part(self._descriptor, self._path, self._sample, part, self._stamp)

    @property
    def path(self) -> str | None:
        """Where the same file can be opened; None: these are not all of its bytes."""
        if self._place is not None:
            return None
        try:
            now = Path(self._path).stat()
        except OSError:
            now = None
        same = now is not None and os.path.samestat(now, self.status)
        return self._path if same else f"/proc/self/fd/{self._descriptor}"


class HeldBytes(SampleBytes):
    """Bytes in memory, which must not change."""

    def __init__(self, data: bytes | bytearray | memoryview, key: Hashable = None) -> None:
        self._data = memoryview(data)
        self.size, self.key = self._data.nbytes, key

    def read(self, position: int, count: int) -> bytes:
        return bytes(self._data[position : position + count])


class ByteFile(SpanFile):
    """Bytes as a file object, for libraries that read such.

    Args:
        data: the bytes.
        blank: spans that are not read: zeros are returned in place of them.

    Attributes:
        error: why a read failed. A library in C may go on after an exception, as if the file ended there.
    """

    def __init__(self, data: SampleBytes, blank: Sequence[Span] = ()) -> None:
        super().__init__(data.size)
        self._data, self._blank = data, blank
        self.error: OSError | None = None

    def _read_span(self, begin: int, end: int) -> bytes:
        try:
            return self._read_parts(begin, end)
        except OSError as error:
            self.error = error
            return b""

    def _read_parts(self, begin: int, end: int) -> bytes:
        parts = []
        for at, length in self._blank:  # in their order
            first, last = max(at, begin), min(at + length, end)
            if first < last:
                parts += [self._data.read(begin, first - begin) if first > begin else b"", bytes(last - first)]
                begin = last
        if begin < end:
            parts.append(self._data.read(begin, end - begin))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def check(self) -> None:
        """Raises OSError if a read has failed."""
        if self.error is not None:
            raise self.error
