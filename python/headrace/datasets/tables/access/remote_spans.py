"""Images at byte ranges of objects in other machines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._storage.parts.remote_bytes import RemoteBytes
from headrace._storage.parts.sample_bytes import SampleBytes
from headrace._storage.remote.remote_files import RemoteFiles

Encoded = bytes  # the method `bytes` hides the name
Int64s = npt.NDArray[np.int64]


class FarSpans:
    """Image i is ``sizes[i]`` bytes of object ``which[i]`` from ``begins[i]`` on. An object that changes is an error.

    Can be pickled.

    Args:
        files: the objects, whose stamps are known.
        which, begins, sizes: int64 (n,).

    Raises:
        ValueError: a span is not within its object.
    """

    name = "image"

    def __init__(self, files: RemoteFiles, which: Int64s, begins: Int64s, sizes: Int64s) -> None:
        stamps = files.stamps or files.take_stamps()
        ends = np.array([one.size for one in stamps], np.int64)[which] if len(which) else begins
        outside = np.flatnonzero((begins < 0) | (sizes < 0) | (begins > ends) | (sizes > ends - begins))
        if len(outside):
            raise ValueError(
                f"sample {outside[0]} is not within {files.shown[int(which[outside[0]])]}; the object is damaged"
            )
        self._files, self._shown = files, files.shown
        self._which, self._begins, self._sizes = (
            which.astype(np.uint32),
            begins.astype(np.uint64),
            sizes.astype(np.uint64),
        )
        self._table = files.table(self._which, self._begins, self._sizes)

    def __len__(self) -> int:
        return len(self._which)

    @property
    def ahead_bytes(self) -> int:
        """Bytes to fetch before they are read."""
        return self._files.network.ahead_bytes

    def expect(self, rows: Int64s, wait: bool = False) -> int:
        """Begins to fetch images and returns their number of bytes; `wait`: see BlobDataset.expect."""
        return self._table.expect(rows, wait)

    def path(self, index: int) -> str | None:
        """Returns None: no image is a file of this machine."""
        return None

    def name_of(self, index: int) -> str | None:
        """Returns the object that holds the image."""
        return self._shown[int(self._which[index])]

    def bytes(self, index: int) -> memoryview:
        """Returns the image's bytes, without any cache. Raises OSError."""
        place = int(self._which[index]), int(self._begins[index]), int(self._sizes[index])
        return memoryview(self._files.read(*place))

    def part(self, index: int) -> SampleBytes:
        """Returns the image's bytes, of which parts can be read. Raises OSError."""
        place = int(self._begins[index]), int(self._sizes[index])
        return RemoteBytes(self._files, int(self._which[index]), place)

    def take(self, index: int) -> Encoded:
        """Returns the image's bytes, from the caches or fetched. Raises OSError."""
        return self._table.take(index)

    def table(self) -> core.BlobTable:
        """Returns the native core's table of the images, for this process."""
        return self._table.blobs()
