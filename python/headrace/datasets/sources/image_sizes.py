"""Sizes of a dataset's images, read from their headers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from headrace.datasets.sources.dataset import BlobDataset

_THREADS = 16  # more than cores: the threads mostly wait for the disk
_AT_ONCE = 4096


def image_sizes(source: BlobDataset) -> npt.NDArray[np.int32]:
    """Returns (height, width) of every sample, int32 (n, 2); (0, 0) for a header that cannot be read."""
    if source.size is not None:
        return np.tile(np.array(source.size, dtype=np.int32), (len(source), 1))
    sizes = np.zeros((len(source), 2), dtype=np.int32)

    def read(index: int) -> tuple[int, int]:
        try:
            return source.image_size(index)
        except Exception:  # Pillow raises many types for a broken file; the loader reports it when the sample is due
            return 0, 0

    with ThreadPoolExecutor(_THREADS) as pool:
        for begin in range(0, len(source), _AT_ONCE):
            end = min(len(source), begin + _AT_ONCE)
            sizes[begin:end] = list(pool.map(read, range(begin, end)))
    return sizes
