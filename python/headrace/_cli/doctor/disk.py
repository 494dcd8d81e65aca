"""Measures how fast the files of a dataset are read from their disk, rather than from memory."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headrace._base.system import drop_page_cache, is_cached
from headrace.datasets.sources import BlobDataset

_LONGEST_S = 1.0
_MOST = 2**20  # bytes of a read
_TRIED = 2000  # files


@dataclass(frozen=True)
class DiskSpeed:
    """What was read.

    Attributes:
        bytes, reads: their numbers.
        seconds: that took.
        from_memory: number of reads that the kernel served from memory. None: the file system does not report it.
    """

    bytes: int
    reads: int
    seconds: float
    from_memory: int | None

    @property
    def mb_per_s(self) -> float:
        return self.bytes / self.seconds / 1e6

    @property
    def cold(self) -> bool | None:
        """Whether most reads came from the disk; None if that is unknown."""
        return None if self.from_memory is None else self.from_memory <= self.reads / 10


def files_of(source: BlobDataset) -> Sequence[str]:
    """Returns the files that hold a source's samples; none if they are not known."""
    for name in ("paths", "files"):
        if (files := getattr(source, name, None)) is not None:
            found: Sequence[str] = files
            return found
    if (path := getattr(source, "path", None)) is not None:
        return [str(path)]
    found = getattr(getattr(source, "images", None), "paths", ())
    return found


def cold_speed(files: Sequence[str], longest_s: float = _LONGEST_S) -> DiskSpeed | None:
    """Reads pieces of random files, one after another, for at most a second; None if nothing can be read.

    The kernel is asked to forget each piece before it is read. It may decline: for a file in a memory file system, or
    one that a process has mapped.
    """
    if not len(files):
        return None
    random = np.random.default_rng()
    read = reads = 0
    from_memory: int | None = 0
    begin, spent = time.perf_counter(), 0.0
    for _ in range(_TRIED):
        try:
            size, seconds, cached = _piece(str(files[int(random.integers(len(files)))]), random)
        except OSError:  # the scan reports files that cannot be read
            continue
        read, reads, spent = read + size, reads + 1, spent + seconds
        from_memory = None if from_memory is None or cached is None else from_memory + cached
        if time.perf_counter() - begin > longest_s:
            break
    return DiskSpeed(read, reads, max(spent, 1e-9), from_memory) if read else None


def _piece(path: str, random: np.random.Generator) -> tuple[int, float, bool | None]:
    """Reads one piece of a file. Returns its bytes, the seconds, and whether it was in memory, if that is known."""
    with Path(path).open("rb", buffering=0) as file:
        number = file.fileno()
        size = os.fstat(number).st_size
        first = int(random.integers(max(1, size - _MOST + 1))) // 4096 * 4096
        drop_page_cache(number, first, _MOST)
        cached = is_cached(number, first)
        begin = time.perf_counter()
        got = len(os.pread(number, _MOST, first))
        return got, time.perf_counter() - begin, cached
