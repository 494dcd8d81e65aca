"""A folder of encoded indexes, one file each, which all processes of this user may read and write at the same time.

A file is renamed into place, so a process that is killed leaves at most an unfinished one. What is in a file is checked
by those who decode it.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from headrace._base import loggers
from headrace._base.private_files import open_own, replace_file
from headrace._storage.remote.disk_cache import DiskCache

MOST_BYTES = 64 << 20  # of one file


class IndexFolder:
    """Can be pickled: a copy uses the same folder.

    Args:
        path: the folder; it is made if it is missing. If it cannot be, or belongs to another user, a warning says so,
            and nothing is read or written.
        size: most bytes; None: nine tenths of the disk. What was not used for the longest time leaves first.
    """

    origin = "folder"

    def __init__(self, path: str, size: int | None) -> None:
        self._given = path, size
        self._disk = DiskCache(path, size)
        self._is_usable = not self._disk.broken

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._given

    @property
    def path(self) -> str:
        """The folder."""
        return self._given[0]

    def _place(self, name: str) -> Path:
        return self._disk.folder / name[:3] / f"{name}.npz"

    def find(self, name: str) -> bytes | None:
        """Returns the content of a file; None if there is none that only this user or root can have written."""
        if not self._is_usable:
            return None
        path = self._place(name)
        try:
            with open_own(path) as file:
                info = os.fstat(file.fileno())
                if info.st_uid not in (os.geteuid(), 0) or info.st_mode & 0o022 or info.st_size > MOST_BYTES:
                    loggers.storage.info("the index in %s is not read: others can have written it", path)
                    return None
                return file.read(MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            loggers.storage.info("the index in %s is not read: %s", path, error)
            return None

    def add(self, name: str, data: bytes) -> None:
        """Writes a file. After a failure it warns once, and writes nothing from then on."""
        if self._disk.broken or len(data) > MOST_BYTES:
            return
        path = self._place(name)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with replace_file(path) as file:
                file.write(data)
        except IsADirectoryError:
            loggers.storage.info("no index is kept in %s: a folder is in its place", path)
        except OSError as error:
            self._disk.give_up(error.errno or errno.EIO)
        else:
            if self._disk.is_due(len(data)):
                self._disk.tidy()
