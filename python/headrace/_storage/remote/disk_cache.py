"""The folder of a cache: names of entries, writing them, and removing the oldest when there are too many bytes."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from headrace._base import loggers, messages
from headrace._base.native import core
from headrace._base.private_files import private_folder
from headrace._storage.remote.clients.responses import Stamp, is_strong
from headrace._storage.remote.urls import name_object, redact_url

_LAYOUT = "headrace-cache-2"
_BEFORE = ("headrace-cache-1",)  # whose names could be those of several objects, and whose files others can read
_FULL = 0.9  # of the disk, where no size is given; and of the size, after entries were removed
_LOOKS = 100  # times that the folder is looked through while it is filled once
_HOUR_S = 3600


class DiskCache:
    """Any number of threads and processes may use one folder at the same time. Every entry is a file that is renamed
    into place, so a process that is killed leaves at most an unfinished file, which is removed an hour later.

    Args:
        path: the folder.
        size: most bytes; None: nine tenths of the disk.
    """

    def __init__(self, path: str, size: int | None) -> None:
        self._path, self._root = Path(path), Path(path, _LAYOUT)
        self._size = size
        self._unlooked = self._step = 0  # bytes written since the folder was looked through; after which it is again
        self._turn = threading.Lock()
        self._said_weak = False
        self.broken: str = ""  # why nothing is written any more
        try:
            private_folder(self._root)
            self._step = (size or shutil.disk_usage(self._root).total) // _LOOKS
        except OSError as error:
            self._stop_writing(error.strerror or str(error))

    def beginning(self, url: str, options: Mapping[str, object], stamp: Stamp) -> str:
        """Returns how the paths of an object's entries begin; "": it is not cached, because a change of its content
        would go unnoticed. A warning says so once."""
        if not is_strong(stamp):
            self._warn_of_weak_stamp(url)
            return ""
        name = hashlib.sha256(repr((name_object(url, options), *stamp)).encode()).hexdigest()
        return str(self._root / name[:3] / name[:40])

    @staticmethod
    def entry(beginning: str, offset: int, length: int, mark: int = 0) -> str:
        """Returns the path of an entry; RemoteRanges makes the same. `mark`: see Range."""
        return f"{beginning}.{offset}-{length}{f'-{mark}' if mark else ''}"

    @property
    def folder(self) -> Path:
        """The folder that may hold other files about the objects."""
        return self._root

    def write(self, path: str, data: bytes | memoryview) -> None:
        """Writes an entry. After a failure it warns once, and writes nothing from then on."""
        if self.broken:
            return
        code = core.write_cache_file(os.fsencode(path), data)
        if code == errno.ENOENT:
            try:
                Path(path).parent.mkdir(mode=0o700, exist_ok=True)
                code = core.write_cache_file(os.fsencode(path), data)
            except OSError as error:
                code = error.errno or errno.EIO
        if code == errno.EISDIR:
            loggers.storage.info("the cache does not keep %s: a folder is in its place", path)
            return
        if code:
            self.give_up(code)
            return
        if self.is_due(len(data)):
            self.tidy()

    def is_due(self, written: int) -> bool:
        """Whether `tidy` is to be called, after `written` more bytes were written."""
        self._unlooked += written
        return 0 < self._step <= self._unlooked

    def tidy(self) -> None:
        """Removes entries until the folder has its size. One process does so at a time; others go on."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            self._unlooked = 0
            for name in _BEFORE:
                shutil.rmtree(self._path / name, ignore_errors=True)  # not of what a link leads to
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(self._root / "lock", flags, 0o600), "rb+", buffering=0) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel drops it when the process ends
                self._remove_oldest()
        except OSError as error:  # another process does it, or the folder is gone
            loggers.storage.debug("the cache in %s is not tidied by this process: %s", self._root, error)
        finally:
            self._turn.release()

    def _remove_oldest(self) -> None:
        total, found = 0, []
        now = time.time()
        for entry in self._scan_entries():
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            used = max(info.st_mtime, info.st_atime)
            if ".unfinished-" in entry.name:
                if now - info.st_mtime > _HOUR_S:
                    Path(entry.path).unlink(missing_ok=True)
                continue
            total += info.st_size
            # By the hour, and within it at random: in shuffled epochs the oldest entry is the one needed next.
            found.append((int(used // _HOUR_S), random.random(), info.st_size, entry.path))
        limit = self._size_limit(total)
        if total <= limit:
            return
        before = total
        for _, _, size, path in sorted(found):
            with suppress(IsADirectoryError, PermissionError):
                Path(path).unlink(missing_ok=True)
            total -= size
            if total <= limit * _FULL:
                break
        loggers.storage.info(
            "the cache in %s had %d bytes, %d are allowed: the oldest %d were removed",
            self._root,
            before,
            limit,
            before - total,
        )

    def _scan_entries(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self._root) as folders:
            for folder in folders:
                if folder.is_dir(follow_symlinks=False) and len(folder.name) == 3:
                    with os.scandir(folder.path) as entries:
                        yield from entries

    def _size_limit(self, here: int) -> int:
        """Returns the most bytes of the folder, which has `here` bytes now."""
        if self._size is not None:
            return self._size
        usage = shutil.disk_usage(self._root)
        return int(usage.total * _FULL) - usage.used + here

    def give_up(self, code: int) -> None:
        """Writes nothing from now on, and warns once. `code`: errno of the write that failed."""
        self._stop_writing(os.strerror(code))

    def _stop_writing(self, why: str) -> None:
        if self.broken:
            return
        self.broken = why
        messages.warn(
            f"the cache in {self._root} cannot be written ({self.broken}): this process goes on without writing to it"
        )

    def _warn_of_weak_stamp(self, url: str) -> None:
        if self._said_weak:
            return
        self._said_weak = True
        messages.warn(
            f"{redact_url(url)} has no ETag that names its content, so the cache in {self._root} keeps nothing of such "
            "objects: one that changes would not be noticed"
        )
