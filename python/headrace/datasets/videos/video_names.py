"""How the native pipeline names a sample of videos: by a few bytes in place of an encoded image.

A name is the sample's number in its dataset, 8 bytes, little-endian, and the path of its file. It stays the sample's in
subsets and concatenations, whose tables only select rows.
"""

from __future__ import annotations

import itertools
import os
import struct

import numpy as np
import numpy.typing as npt

from headrace.datasets.sources.packed_paths import PackedPaths

_NUMBER = struct.Struct("<q")


def pack_names(paths: PackedPaths) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Returns the names of all samples, one after the other, and where each begins, int64 (n + 1,)."""
    begins = np.append(paths.offsets.astype(np.int64), len(paths.packed)).tolist()
    names = [
        _NUMBER.pack(number) + paths.packed[begin : end - 1]  # each path ends with a zero byte
        for number, (begin, end) in enumerate(itertools.pairwise(begins))
    ]
    return b"".join(names), np.cumsum([0, *map(len, names)])


def unpack_name(name: bytes) -> tuple[int, str]:
    """Returns the sample's number in its dataset, and the path of its file."""
    (number,) = _NUMBER.unpack_from(name)
    return number, os.fsdecode(name[_NUMBER.size :])
