"""The caches of local files of this process: one for all datasets with equal settings, as long as one of them lives.
Counts of what was found in them."""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._storage.remote.cache import Cache, checked_cache
from headrace._storage.remote.disk_cache import DiskCache


@dataclass(frozen=True)
class Kept:
    """Counts of all caches of local files that datasets of this process use, since they were made.

    Attributes:
        read: samples that were read from their files.
        from_memory, from_disk: samples that were found in a cache.
        bytes: bytes in memory now.
    """

    read: int
    from_memory: int
    from_disk: int
    bytes: int

    @property
    def hit_rate(self) -> float:
        """The share of samples that the caches had."""
        hits = self.from_disk + self.from_memory
        return hits / (hits + self.read) if hits + self.read else 0.0

    def __str__(self) -> str:
        return (
            f"cache: {self.hit_rate:.1%} of {self.read + self.from_disk + self.from_memory} samples found "
            f"(memory {self.from_memory}, disk {self.from_disk}), {self.bytes:,} bytes in memory"
        )


_lock = threading.Lock()
_caches: dict[Cache, weakref.ref[LocalBytes]] = {}  # without callbacks: an interrupt in one is lost


class LocalBytes:
    """A cache of encoded samples, filled by the threads that read them. Pickling it sends its settings.

    Args:
        cache: its settings.
    """

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._process = os.getpid()
        self._successor: LocalBytes | None = None  # of a child process
        self._disk: DiskCache | None = None
        if cache.path is not None:
            assert cache.size is None or isinstance(cache.size, int)
            self._disk = DiskCache(str(cache.path), cache.size)
            _start_thread(self._disk.tidy)
        writable = self._disk is not None and not self._disk.broken
        self._native = core.LocalCache(
            int(cache.memory), os.fsencode(self._disk.folder) if writable and self._disk else b""
        )

    def _cache_of_process(self) -> LocalBytes:
        """Returns the cache with these settings of the current process."""
        if self._process == os.getpid():
            return self
        if self._successor is None or self._successor._process != os.getpid():
            self._successor = local_bytes(self.cache)
        return self._successor

    def files(self, packed: bytes, offsets: npt.NDArray[np.uint64]) -> core.BlobTable:
        """Returns the table of whole files; `packed`, `offsets`: see PackedPaths. A file that changes is read again."""
        return self._cache_of_process()._native.files(packed, offsets)

    def ranges(self, table: core.BlobTable) -> core.BlobTable:
        """Returns a table of ranges of files, as `core.table_of_ranges` made it, that reads through the cache. A file
        that changes is an error."""
        return self._cache_of_process()._native.ranges(table)

    def maintain_folder(self) -> None:
        """Keeps the folder within its size, and warns once if it cannot be written to. Called once a batch."""
        here = self._cache_of_process()
        if here._disk is None:
            return
        if code := here._native.write_error():
            here._disk.give_up(code)
        if here._disk.is_due(here._native.take_written()):
            _start_thread(here._disk.tidy)

    def counts(self) -> dict[str, int]:
        """Returns the fields of Kept."""
        return self._native.counts()

    def __reduce__(self) -> tuple[object, ...]:
        return local_bytes, (self.cache,)


def local_bytes(cache: Cache) -> LocalBytes:
    """Returns this process's cache with these settings."""
    with _lock:
        reference = _caches.get(cache)
        found = None if reference is None else reference()
        if found is None:
            for one in [one for one, reference in _caches.items() if reference() is None]:
                del _caches[one]
            found = LocalBytes(cache)
            _caches[cache] = weakref.ref(found)
        return found


def checked_local(cache: Cache | str | os.PathLike[str] | None) -> LocalBytes | None:
    """Returns what the argument `cache` of a dataset of local files describes. Raises TypeError, ValueError."""
    checked = checked_cache(cache)
    return None if checked is None else local_bytes(checked)


def open_cache(cache: Cache | str | os.PathLike[str] | None) -> tuple[LocalBytes | None, str | os.PathLike[str] | None]:
    """Returns the cache of samples, and the folder for copies of files, of a dataset of local files that makes such
    copies: a folder alone is for these. Raises TypeError, ValueError."""
    checked = checked_cache(cache)
    if checked is None:
        return None, None
    alone = not isinstance(cache, Cache) and checked.path is not None
    return None if alone else local_bytes(checked), checked.path


def tended_bytes(local: LocalBytes | None) -> int:
    """Returns `ahead_bytes` of a source of local files: more than 0, so that each batch is announced, where the folder
    of its cache has to be tended."""
    return 0 if local is None or local.cache.path is None else 1


def sum_caches() -> Kept | None:
    """Returns what the caches of this process did; None if there is none."""
    with _lock:
        caches = [one for reference in _caches.values() if (one := reference()) is not None]
    if not caches:
        return None
    total: Counter[str] = Counter()
    for one in caches:
        total.update(one.counts())
    return Kept(**{field.name: total[field.name] for field in fields(Kept)})


def _start_thread(call: Callable[[], object]) -> None:
    threading.Thread(target=call, name="headrace cache", daemon=True).start()


def _forget_the_parents() -> None:
    global _lock, _caches
    _lock = threading.Lock()
    _caches = {}


os.register_at_fork(after_in_child=_forget_the_parents)
