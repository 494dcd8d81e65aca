"""Images at byte ranges of files that hold many."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._storage.local_cache.local_caches import LocalBytes, tended_bytes
from headrace._storage.parts.file_reads import read_range
from headrace._storage.parts.sample_bytes import FileBytes, SampleBytes
from headrace.datasets.sources.packed_paths import PackedPaths

Int64s = npt.NDArray[np.int64]


class Stamp(NamedTuple):
    """What a file was when it was opened."""

    path: str
    size: int
    modified_ns: int

    @classmethod
    def of(cls, path: str) -> Stamp:
        info = Path(path).stat()
        return cls(path, info.st_size, info.st_mtime_ns)


def map_file(path: str) -> mmap.mmap | bytes:
    """Returns the bytes of a file, mapped read-only; b"" for an empty file."""
    with Path(path).open("rb") as file:
        file.seek(0, 2)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.tell() else b""


class FileSpans:
    """Image i is ``sizes[i]`` bytes of file ``which[i]`` from ``begins[i]`` on. A file that changes is an error.

    Args:
        files: what the files were when the spans were found.
        which, begins, sizes: int64 (n,).
        cache: keeps the bytes.

    Raises:
        ValueError: a span is not within its file.
    """

    name = "image"

    def __init__(
        self, files: Sequence[Stamp], which: Int64s, begins: Int64s, sizes: Int64s, cache: LocalBytes | None = None
    ) -> None:
        self._files, self._cache = list(files), cache
        ends = np.array([one.size for one in files], np.int64)[which] if len(which) else begins
        outside = np.flatnonzero((begins < 0) | (sizes < 0) | (begins > ends) | (sizes > ends - begins))
        if len(outside):
            raise ValueError(
                f"sample {outside[0]} is not within {files[int(which[outside[0]])].path}; the file is damaged"
            )
        self._which, self._begins, self._sizes = (
            which.astype(np.uint32),
            begins.astype(np.uint64),
            sizes.astype(np.uint64),
        )

    def __len__(self) -> int:
        return len(self._which)

    @property
    def ahead_bytes(self) -> int:
        """More than 0 where batches are to be announced; see BlobDataset."""
        return tended_bytes(self._cache)

    def expect(self, rows: Int64s, wait: bool = False) -> int:
        """Returns 0: no image is in another machine."""
        if self._cache is not None:
            self._cache.maintain_folder()
        return 0

    def path(self, index: int) -> str | None:
        """Returns None: no image is a file of its own."""
        return None

    def name_of(self, index: int) -> str | None:
        """Returns the file that holds the image."""
        return self._files[int(self._which[index])].path

    def bytes(self, index: int) -> memoryview:
        """Returns the image's bytes. Raises OSError if the file cannot be read, or has changed."""
        path, *stamp = self._files[int(self._which[index])]
        return memoryview(read_range(path, int(self._begins[index]), int(self._sizes[index]), tuple(stamp)))

    def part(self, index: int) -> SampleBytes:
        """Returns the image's bytes, of which parts can be read. Raises OSError as `bytes` does."""
        path, *stamp = self._files[int(self._which[index])]
        return FileBytes(path, (int(self._begins[index]), int(self._sizes[index])), tuple(stamp))

    def table(self) -> core.BlobTable:
        """Returns the native core's table of the images."""
        paths = PackedPaths(one.path for one in self._files)
        stamps = np.array([one[1:] for one in self._files], np.int64).reshape(-1, 2)
        table = core.table_of_ranges(paths.packed, paths.offsets, stamps, self._which, self._begins, self._sizes)
        return table if self._cache is None else self._cache.ranges(table)
