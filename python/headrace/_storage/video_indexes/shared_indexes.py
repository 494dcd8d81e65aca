"""What users say about indexes of videos: how much memory the processes of a loader share, and which folder."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import Literal, TypeAlias

from headrace._base import loggers
from headrace._storage.remote.cache import Cache, checked_cache
from headrace._storage.video_indexes.index_folder import IndexFolder
from headrace._storage.video_indexes.index_memory import IndexMemory, is_possible

AUTO: Literal["auto"] = "auto"
AUTO_BYTES = 256 << 20  # about 10 bytes a frame

#: The argument `video_index` of a loader, checked.
VideoIndex: TypeAlias = "Cache | Literal['auto'] | None"


class SharedIndexes:
    """Encoded indexes that other processes have learned, or an earlier run; and for them.

    A copy in a process that is being started has the same memory and folder, any other copy only the folder.

    Args:
        memory: that processes share, or its limit in bytes: then it is made when it is first needed. None: none.
        folder: for later runs; None: none.
    """

    def __init__(self, memory: IndexMemory | int | None, folder: IndexFolder | None) -> None:
        self._given, self._folder = memory, folder

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.prepare_memory(), self._folder)

    def prepare_memory(self) -> IndexMemory | None:
        """Returns the memory. Called before other processes begin, which are to share it."""
        if isinstance(self._given, int):
            try:
                self._given = IndexMemory(self._given) if is_possible() else None
            except OSError as error:
                loggers.storage.info("indexes of videos are not shared in memory: %s", error)
                self._given = None
        return self._given

    def __deepcopy__(self, known: dict[int, object]) -> SharedIndexes:
        return self  # loaders share it, as a lock

    def find(self, name: str) -> Iterator[tuple[str, bytes]]:
        """Returns what is kept with a name, which may be damaged, and where: "memory" or "folder"."""
        for one in (self.prepare_memory(), self._folder):
            data = None if one is None else one.find(name)
            if one is not None and data is not None:
                yield one.origin, data

    def add(self, name: str, data: bytes) -> None:
        """Keeps an index."""
        self.add_to_memory(name, data)
        if self._folder is not None:
            self._folder.add(name, data)

    def add_to_memory(self, name: str, data: bytes) -> None:
        """Keeps an index that the folder has."""
        memory = self.prepare_memory()
        if memory is not None:
            memory.add(name, data)


_of_process: dict[VideoIndex, weakref.ref[SharedIndexes]] = {}  # without callbacks, whose exceptions Python ignores


def shared_by_process(given: VideoIndex) -> SharedIndexes | None:
    """Returns what the loaders of this process with an equal argument share; it ends with the last of them."""
    if given is None:
        return None
    known = _of_process.get(given)
    found = None if known is None else known()
    if found is None:
        limit, folder = AUTO_BYTES, None
        if given != AUTO:
            limit = int(given.memory)
            folder = None if given.path is None else IndexFolder(os.fspath(given.path), _size_of(given))
        found = SharedIndexes(limit or None, folder)
        _of_process[given] = weakref.ref(found)
    return found


def _size_of(cache: Cache) -> int | None:
    return None if cache.size is None else int(cache.size)


def checked_video_index(given: object) -> VideoIndex:
    """Returns the argument `video_index` of a loader.

    Raises:
        TypeError: it is none.
        ValueError: a size in it is none.
    """
    if given is None or (isinstance(given, str) and given == AUTO):
        return AUTO if given else None
    if isinstance(given, (str, os.PathLike, Cache)):
        return checked_cache(given)
    raise TypeError(
        f"video_index must be 'auto', a folder, 'memory:1 GB', a headrace.Cache, or None, not {type(given).__name__}"
    )
