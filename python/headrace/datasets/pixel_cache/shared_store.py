"""Byte strings by number, in memory that all processes of a machine share: each is written once, and never moved."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import mmap
import os
import stat
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from headrace._base.lifetimes.finalizers import Ending, call_in_finalizer_thread

_FOLDER = Path("/dev/shm")
_MAGIC = b"hrpixel1"
_HEADER = struct.Struct("<8sQQQ32s")  # magic, numbers, limit, bytes used, what is kept
_PAGE = 4096  # bytes of the header
_USED_AT = 24  # offset of the bytes used, on which writers have a lock
_ENTRY = 16  # bytes of a number's entry: offset of the bytes, 0: none; their length
_ALIGN = 64
_NOTHING, _RESERVED = 0, 1  # offsets; below _PAGE


class SharedStore(Ending):
    """Reading needs no lock. A writer reserves its bytes under a lock of the file, fills them, and publishes them by
    one store of an aligned word, so a process that ends in between leaves bytes that nobody reads.

    Args:
        count: how many numbers there are.
        limit: most bytes.
        name: of a file in /dev/shm, which other processes of this user open by the same name; the last that closes it
            removes it. None: memory without a name, for this process and those that it forks or sends the store to.
        kept: what is kept: 32 bytes, which must be equal for all processes.

    Raises:
        OSError: the memory cannot be made.
        ValueError: other processes keep something else by this name, or with another limit.
    """

    def __init__(self, count: int, limit: int, name: str | None, kept: bytes) -> None:
        self._count, self._limit, self._kept = count, limit, kept
        self._path: str | None = None if name is None else str(_FOLDER / f"headrace-{os.getuid()}-{name}.pixels")
        self._begin = -(-(_PAGE + _ENTRY * count) // _PAGE) * _PAGE
        self._open(os.memfd_create("headrace pixels", os.MFD_CLOEXEC) if self._path is None else self._open_named())

    def _open_named(self) -> int:
        """Returns the file of this name; one that no living process has open is emptied."""
        assert self._path is not None
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                info = os.fstat(file)
                if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
                    raise OSError(f"{self._path} is no file of this user alone: remove it, or give another name")
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.ftruncate(file, 0)  # what a run has left that was killed
                    self._write_header(file)
                except BlockingIOError:
                    pass
                fcntl.flock(file, fcntl.LOCK_SH)  # waits for the header
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.stat(self._path), info) and os.fstat(file).st_size:  # noqa: PTH116
                        return file
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # it was removed, or not yet filled, in between

    def _write_header(self, file: int) -> None:
        os.ftruncate(file, self._begin + self._limit)
        os.posix_fallocate(file, 0, self._begin)
        os.pwrite(file, _HEADER.pack(_MAGIC, self._count, self._limit, 0, self._kept), 0)

    def _open(self, file: int) -> None:
        if os.fstat(file).st_size == 0:
            self._write_header(file)
        magic, count, limit, _, kept = _HEADER.unpack(os.pread(file, _HEADER.size, 0))
        if (magic, count, limit, kept) != (_MAGIC, self._count, self._limit, self._kept):
            os.close(file)
            raise ValueError(
                f"other processes keep the samples of another dataset, or with another limit, in {self._path}: give "
                "another name"
            )
        self._file = file
        self._map = mmap.mmap(file, self._begin + self._limit)
        self._entries = np.frombuffer(self._map, np.int64, 2 * count, _PAGE).reshape(count, 2)
        self._lock, self._pid = threading.Lock(), os.getpid()
        self.full: bool = False
        self.at_end: Callable[[], object] = functools.partial(os.close, file)
        if self._path is not None:
            self.at_end = call_in_finalizer_thread(_NamedFile(file, self._path).close)

    def fits(self, count: int, limit: int, kept: bytes) -> bool:
        """Whether it was made with these arguments."""
        return (count, limit, kept) == (self._count, self._limit, self._kept)

    def get(self, number: int) -> memoryview | None:
        """Returns the bytes of a number, which nothing changes; None: there are none."""
        begin, length = self._entries[number].tolist()
        if begin < _PAGE:
            return None
        return memoryview(self._map)[begin : begin + length]

    def put(self, number: int, parts: Sequence[bytes | memoryview]) -> bool:
        """Keeps the joined parts; returns whether they are kept now, or were before. They are not where there is no
        room, or another process is writing them."""
        length = sum(len(part) for part in parts)
        with self._writing():
            entry = self._entries[number]
            if entry[0] != _NOTHING:
                return bool(entry[0] >= _PAGE)
            (used,) = struct.unpack_from("<Q", self._map, _USED_AT)
            if used + length > self._limit:
                self.full = True
                return False
            begin = self._begin + used
            try:
                os.posix_fallocate(self._file, begin, max(1, length))  # otherwise a full machine would be a SIGBUS
            except OSError:
                self.full = True
                return False
            entry[0] = _RESERVED
            struct.pack_into("<Q", self._map, _USED_AT, used + -(-length // _ALIGN) * _ALIGN)
        at = begin
        for part in parts:
            self._map[at : at + len(part)] = part
            at += len(part)
        with self._writing():  # system calls, so all of it is visible before its place is
            entry[1] = length
        entry[0] = begin
        return True

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Excludes the writers of all processes and threads."""
        if self._pid != os.getpid():  # another thread may have held it when the process was forked
            self._lock, self._pid = threading.Lock(), os.getpid()
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 8, _USED_AT)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 8, _USED_AT)

    @property
    def used(self) -> int:
        """Bytes of all that is kept."""
        return int(struct.unpack_from("<Q", self._map, _USED_AT)[0])

    @property
    def kept(self) -> int:
        """How many numbers have bytes."""
        return int(np.count_nonzero(self._entries[:, 0] >= _PAGE))

    def __getstate__(self) -> dict[str, object]:
        where = self._path or f"/proc/{os.getpid()}/fd/{self._file}"
        return {"where": where, "named": self._path, "terms": (self._count, self._limit, self._kept, self._begin)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._count, self._limit, self._kept, self._begin = state["terms"]  # type: ignore[misc]
        self._path = state["named"]  # type: ignore[assignment]
        file = os.open(str(state["where"]), os.O_RDWR | os.O_CLOEXEC)
        if self._path is not None:
            fcntl.flock(file, fcntl.LOCK_SH)
        self._open(file)


class _NamedFile:
    """An open file with a name, which the last process that closes it removes."""

    def __init__(self, number: int, path: str) -> None:
        self._number, self._path, self._process = number, path, os.getpid()
        _open_files.add(self)

    def close(self) -> None:
        """Closes it once. A forked process shares the lock of its parent, so it leaves the name alone."""
        if self not in _open_files:
            return
        _open_files.discard(self)
        with contextlib.suppress(OSError):
            if self._process == os.getpid():
                fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.stat(self._path), os.fstat(self._number)):  # noqa: PTH116 - a string
                    os.unlink(self._path)  # noqa: PTH108
        with contextlib.suppress(OSError):
            os.close(self._number)


_open_files: set[_NamedFile] = set()


@atexit.register
def _close_files() -> None:
    """The stores that are alive when the process ends."""
    for file in list(_open_files):
        file.close()
