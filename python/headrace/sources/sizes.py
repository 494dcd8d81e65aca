"""The sizes of a dataset's images, from their headers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from headrace.sources.dataset import BlobDataset

_THREADS = 16  # most of the time goes into waiting for a disk
_AT_ONCE = 4096


def image_sizes(source: BlobDataset) -> npt.NDArray[np.int32]:
    """(height, width) of every sample, int32 (n, 2): (0, 0) where that cannot be read."""
    if source.size is not None:
        return np.tile(np.array(source.size, dtype=np.int32), (len(source), 1))
    sizes = np.zeros((len(source), 2), dtype=np.int32)

    def read(index: int) -> tuple[int, int]:
        try:
            return source.image_size(index)
        except Exception:  # whatever Pillow raises for a broken file: the loader will say so when it is due
            return 0, 0

    with ThreadPoolExecutor(_THREADS) as pool:
        for begin in range(0, len(source), _AT_ONCE):
            end = min(len(source), begin + _AT_ONCE)
            sizes[begin:end] = list(pool.map(read, range(begin, end)))
    return sizes
