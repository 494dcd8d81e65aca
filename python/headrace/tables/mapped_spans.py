"""Images at byte ranges of mapped files."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.base.native import core

Int64s = npt.NDArray[np.int64]


def mapped(path: str) -> Any:
    """Returns the bytes of a file, mapped read-only; b"" for an empty file."""
    with Path(path).open("rb") as file:
        file.seek(0, 2)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.tell() else b""


class MappedSpans:
    """Image i is ``sizes[i]`` bytes of file ``which[i]`` from ``begins[i]`` on.

    Args:
        files: the paths and the mapped bytes of the files.
        which, begins, sizes: int64 (n,).

    Raises:
        ValueError: a span does not lie in its file.
    """

    name = "image"

    def __init__(self, files: Sequence[tuple[str, Any]], which: Int64s, begins: Int64s, sizes: Int64s) -> None:
        self.paths, self._files = [path for path, _ in files], [data for _, data in files]
        self._which, self._begins, self._sizes = which, begins, sizes
        ends = np.array([len(data) for data in self._files], np.int64)[which] if len(which) else begins
        outside = np.flatnonzero((begins < 0) | (sizes < 0) | (begins > ends) | (sizes > ends - begins))
        if len(outside):
            raise ValueError(
                f"sample {outside[0]} does not lie in {self.paths[which[outside[0]]]}; the file is damaged"
            )

    def __len__(self) -> int:
        return len(self._which)

    def path(self, index: int) -> str | None:
        """Returns None: no image is a file of its own."""
        return None

    def name_of(self, index: int) -> str | None:
        """Returns the file that holds the image."""
        return self.paths[int(self._which[index])]

    def bytes(self, index: int) -> memoryview:
        """Returns the image's bytes."""
        begin = int(self._begins[index])
        return memoryview(self._files[self._which[index]])[begin : begin + int(self._sizes[index])]

    def table(self) -> core.BlobTable:
        """Returns the native core's table of the images."""
        return core.BlobTable.of_spans(self._files, self._which, self._begins, self._sizes)
