"""A folder of shards: of this machine, or below a URL."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from headrace._storage.local_cache.local_caches import LocalBytes, open_cache
from headrace._storage.remote.cache import checked_cache
from headrace._storage.remote.remote_files import Access
from headrace._storage.remote.urls import redact_url
from headrace.datasets.tables.access.location import find_remote_files
from headrace.datasets.tables.converted_files import cache_folder, decompress_file


class Folder:
    """Shards and their index.

    Args:
        path: the folder, or its URL.
        access: the arguments of the dataset about it.

    Attributes:
        access: how objects below the URL are read; None: it is a folder of this machine.
        kept: the folder for what is made of shards.
        local: the cache of samples that are read from files of this machine.
        shown: the folder's name, for messages.
    """

    def __init__(self, path: str | os.PathLike[str], access: Access) -> None:
        self.access: Access | None = access.choose_access(path)
        self.local: LocalBytes | None = None
        self.kept: Path
        self.shown: str
        if self.access is None:
            self.local, copies = open_cache(access.cache)
            self.kept = cache_folder(copies)
            self._root = str(Path(path).absolute())
            self.shown = self._root
        else:
            cache = checked_cache(access.cache)
            self.kept = cache_folder(None if cache is None else cache.path)
            self._root = str(path)
            self.shown = redact_url(self._root).rstrip("/")

    def __str__(self) -> str:
        return self.shown

    def read(self, name: str) -> bytes:
        """Returns the bytes of a file. Raises OSError."""
        if self.access is None:
            return Path(self._root, name).read_bytes()
        return self.access.files([self.path(name)]).read(0, 0, None)

    def path(self, name: str) -> str:
        """Returns the path or the URL of a file. Raises ValueError if it is not in the folder."""
        parts = PurePosixPath(name).parts
        if PurePosixPath(name).is_absolute() or ".." in parts or (self.access and any(one in name for one in "?#\\")):
            raise ValueError(f"the index of {self} names {name!r}, which is not in the folder")
        if self.access is None:
            return str(Path(self._root, name))
        head, mark, query = self._root.partition("?")
        return f"{head.rstrip('/')}/{name}{mark}{query}"

    def has(self, name: str) -> bool:
        """Whether a file is there. Other machines are not asked."""
        return self.access is None and Path(self.path(name)).exists()

    def here(self, name: str) -> str:
        """Returns the path of a file on this machine; of an object, that of a copy. Raises OSError."""
        if self.access is None:
            return self.path(name)
        return find_remote_files([self.path(name)], self.access)[0].here(self.kept)

    def decompress(self, name: str, compression: str, size: int) -> str:
        """Returns the path of a decompressed copy of a file; see `converted_files.decompress_file`."""
        return decompress_file(self.here(name), compression, size, self.kept)
