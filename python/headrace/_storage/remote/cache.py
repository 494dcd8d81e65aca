"""What users say about caching: where, and how much."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from headrace._base.checks import checked_size


@dataclass(frozen=True)
class Cache:
    """A cache of encoded images, for the argument ``cache``: of images that come from other machines, or from files.
    Also of indexes of videos, for the argument ``video_index`` of a loader.

    Loaders with equal caches share them: within a process what is in memory, on one machine what is on disk, ranks and
    other programs of this user included. Entries are named by URL, size and ETag, or by path, inode, size and times of
    modification and change, so an object or a file that changes is read again, and have a checksum, which every read
    compares. Objects without an ETag are not kept on disk. Only this user can read the entries. The bytes in memory of
    remote objects and of local files are counted apart.

    Args:
        path: a folder on a local, fast disk, which is made if it is missing. None: nothing is kept on disk.
        size: most bytes in that folder, a number or a text such as ``"100 GB"``. What was not used for the longest time
            leaves first, by the hour. None: the disk may be filled up to nine tenths.
        memory: bytes that stay in memory after they were read, the same way; 0: none. While it is full, what is in it
            stays: a shuffled epoch larger than its cache finds most of its samples so.

    Raises:
        ValueError: neither `path` nor `memory` is given, or a size is none.
    """

    path: str | os.PathLike[str] | None = None
    size: int | str | None = None
    memory: int | str = 0

    def __post_init__(self) -> None:
        if self.path is None and not self.memory:
            raise ValueError("a Cache needs a path, or memory, such as Cache(memory='8 GB')")
        if self.size is not None:
            object.__setattr__(self, "size", checked_size(self.size, "size"))
        if self.memory:
            object.__setattr__(self, "memory", checked_size(self.memory, "memory"))
        if self.path is not None:
            object.__setattr__(self, "path", os.path.abspath(os.fspath(self.path)))  # noqa: PTH100


def checked_cache(cache: Cache | str | os.PathLike[str] | None) -> Cache | None:
    """Returns the argument `cache` of a dataset: a Cache, a folder, or ``"memory:8 GB"``."""
    if cache is None or isinstance(cache, Cache):
        return cache
    if isinstance(cache, str) and cache.startswith("memory:"):
        return Cache(memory=cache.removeprefix("memory:"))
    if isinstance(cache, (str, Path, os.PathLike)):
        return Cache(cache)
    raise TypeError(f"cache must be a folder, 'memory:8 GB' or a headrace.Cache, not {type(cache).__name__}")
