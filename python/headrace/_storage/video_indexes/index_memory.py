"""Encoded indexes in memory that the processes of a loader share: a file without a name.

Forked workers inherit its descriptor, others get one with the message that starts them. The memory has a table of
places, found by the first bytes of an index's name, and then the indexes. Only one process writes at a time; it
publishes an index after its bytes, so one that is killed leaves nothing half written, and its lock is dropped by the
kernel. Nothing that is read is believed: those who decode an index check it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import context
from multiprocessing.reduction import DupFd
from typing import Any

from headrace._base import loggers
from headrace._base.lifetimes.finalizers import Ending

_MARK = 16  # random bytes at the beginning, by which another process knows the memory
_END = struct.Struct("<Q")  # after the mark: where the next index goes
_PLACE = struct.Struct("<QQQ")  # the beginning of its name, not 0; position; number of bytes
_PLACES = 4096  # position of the table
_BYTES_A_PLACE = 1024  # of the limit
_FEWEST_PLACES = 256
_LOOKS = 64  # at places, for one name
_TRIES, _PAUSE_S = 5, 0.0005  # while another process writes


class IndexMemory(Ending):
    """For any thread. A copy in a process that is being started has the same memory; any other copy has none.

    Args:
        limit: most bytes. At the limit nothing more is added.

    Raises:
        OSError: there is no such memory.
    """

    origin = "memory"
    descriptor: int
    at_end: Callable[[], object]

    def __init__(self, limit: int) -> None:
        descriptor = os.memfd_create("headrace-indexes", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._begin_with(descriptor, limit, os.urandom(_MARK))
        os.ftruncate(descriptor, self._size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        os.pwrite(self.descriptor, self._mark + _END.pack(self._first), 0)

    def _begin_with(self, descriptor: int, limit: int, mark: bytes) -> None:
        self.descriptor, self._limit, self._mark = descriptor, limit, mark
        self.at_end = functools.partial(os.close, descriptor)
        self._places = max(_FEWEST_PLACES, limit // _BYTES_A_PLACE)
        self._first = _PLACES + self._places * _PLACE.size
        self._size = self._first + limit
        self._turn, self._process = threading.Lock(), os.getpid()

    def __reduce__(self) -> tuple[object, ...]:
        if getattr(context, "get_spawning_popen")() is None:  # noqa: B009 - not in typeshed
            return _make_none, ()
        return _attach, (DupFd(self.descriptor), self._limit, self._mark)

    @property
    def nbytes(self) -> int:
        """Bytes of the indexes."""
        return self._read_end() - self._first

    def find(self, name: str) -> bytes | None:
        """Returns the bytes that were added with a name, hexadecimal; or others, if the memory was damaged."""
        wanted = _number_of(name)
        for place in self._candidates(wanted):
            number, at, count = self._read_place(place)
            if number == 0:
                return None
            if number == wanted:
                is_inside = self._first <= at <= at + count <= self._size
                return os.pread(self.descriptor, count, at) if is_inside else None
        return None

    def add(self, name: str, data: bytes) -> None:
        """Adds bytes, or replaces them, if there is room and no other process writes for long."""
        wanted = _number_of(name)
        try:
            with self._writing():
                end = self._read_end()
                if not self._first <= end <= end + len(data) <= self._size:
                    return
                for place in self._candidates(wanted):
                    if self._read_place(place)[0] in (0, wanted):
                        self._write(data, end)
                        self._write(_END.pack(end + len(data)), _MARK)
                        self._write(_PLACE.pack(wanted, end, len(data)), _PLACES + place * _PLACE.size)
                        return
        except OSError as error:  # no memory, or another process writes
            loggers.storage.debug("an index is not shared: %s", error)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Lets one thread of one process write. Raises OSError if it has to wait for long."""
        if self._process != os.getpid():  # a thread of the parent may have held the lock
            self._turn, self._process = threading.Lock(), os.getpid()
        with self._turn:
            try:
                self._lock()
                yield
            finally:
                fcntl.lockf(self.descriptor, fcntl.LOCK_UN)

    def _lock(self) -> None:
        for _ in range(_TRIES - 1):
            with contextlib.suppress(BlockingIOError):
                fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_PAUSE_S)
        fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _candidates(self, number: int) -> Iterator[int]:
        return ((number + step) % self._places for step in range(min(_LOOKS, self._places)))

    def _read_place(self, place: int) -> tuple[int, int, int]:
        found: tuple[int, int, int] = _PLACE.unpack(
            os.pread(self.descriptor, _PLACE.size, _PLACES + place * _PLACE.size)
        )
        return found

    def _read_end(self) -> int:
        end: int = _END.unpack(os.pread(self.descriptor, _END.size, _MARK))[0]
        return end

    def _write(self, data: bytes, at: int) -> None:
        done = 0
        while done < len(data):
            done += os.pwrite(self.descriptor, memoryview(data)[done:], at + done)


def is_possible() -> bool:
    """Whether the system has such memory."""
    return hasattr(os, "memfd_create")


def _number_of(name: str) -> int:
    return int(name[:16], 16) | 1


def _make_none() -> None:
    return None


def _attach(sent: Any, limit: int, mark: bytes) -> IndexMemory | None:
    """Returns the memory in the process that it was sent to; None if the descriptor leads elsewhere."""
    made = IndexMemory.__new__(IndexMemory)
    made._begin_with(sent.detach(), limit, mark)
    is_ours = os.fstat(made.descriptor).st_size == made._size and os.pread(made.descriptor, _MARK, 0) == mark
    return made if is_ours else None
