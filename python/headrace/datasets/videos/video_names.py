"""How the native pipeline names a sample of videos: by a few bytes in place of an encoded image.

A name is the number of a table and the sample's number in its dataset, 8 bytes each, little-endian. It stays the
sample's in subsets and concatenations, whose tables only select rows.
"""

from __future__ import annotations

import itertools
import struct
import weakref
from typing import Any

import numpy as np

from headrace._base.native import core
from headrace.datasets.sources.dataset import BlobDataset

_NAME = struct.Struct("<qq")
_numbers = itertools.count()


class _Names(np.ndarray[Any, np.dtype[np.int64]]):
    """The names of a dataset's samples, int64 (n, 2). They keep the dataset as long as a table refers to them."""

    videos: BlobDataset


_tables: dict[int, weakref.ref[_Names]] = {}  # without callbacks, whose exceptions Python ignores


def name_samples(videos: BlobDataset) -> core.BlobTable:
    """Returns a table whose rows are the names of a dataset's samples."""
    count, table = len(videos), next(_numbers)
    names = np.empty((count, 2), np.int64).view(_Names)
    names[:, 0], names[:, 1] = table, np.arange(count)
    names.videos = videos
    for number in [number for number, known in list(_tables.items()) if known() is None]:
        _tables.pop(number, None)
    _tables[table] = weakref.ref(names)
    held: Any = names  # a buffer
    begins, sizes = _NAME.size * np.arange(count, dtype=np.int64), np.full(count, _NAME.size, np.int64)
    return core.BlobTable.of_spans([held], np.zeros(count, np.int64), begins, sizes)


def find_sample(name: bytes) -> tuple[BlobDataset, int]:
    """Returns the dataset of a sample, and its number in it."""
    table, number = _NAME.unpack_from(name)
    names = _tables[table]()
    assert names is not None, "a table that names samples keeps them"
    return names.videos, number
