"""Chunks of litdata whose samples are compressed inside the file: written once without compression.

Batch: the chunk begins with its own magic number; after the places of the samples, as they are without compression,
comes a table of zstd frames, each of several samples. Sample: the places are those of the frames, one a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace.datasets.tables.converted_files import made_once, pyarrow
from headrace.datasets.tables.file_spans import map_file

_MAGIC = b"LDFZ01\0\0"
_PREFIX = np.dtype([("magic", "S8"), ("version", "<u2"), ("flags", "<u2")] + [(n, "<u4") for n in ("n", "rows", "k")])
_FRAME = np.dtype([("first", "<u4"), ("items", "<u4"), ("at", "<u8"), ("packed", "<u4"), ("size", "<u4")])
_MOST = 2**32 - 1  # bytes of a chunk without compression: its places are uint32
_PIECE = 1 << 20

#: What a chunk holds: the sizes of its samples, and their bytes, in pieces.
Fields = tuple[npt.NDArray[np.int64], Iterator[bytes]]


def inflate_chunk(path: str, level: str, samples: int, cache: Path) -> str:
    """Returns the path of a chunk's copy without compression, in the folder `cache`.

    Args:
        level: ``"batch"`` or ``"sample"``.
        samples: in the chunk, as the index says.

    Raises:
        ImportError: pyarrow, which decompresses, is not installed.
        OSError: the chunk cannot be read, or the cache cannot be written.
        ValueError: the chunk is damaged, or of another layout.
    """
    read: Callable[[memoryview, int], Fields] = {"batch": _read_frames, "sample": _read_samples}[level]
    pyarrow()

    def make(target: str) -> None:
        data = memoryview(map_file(path))
        try:
            sizes, pieces = read(data, samples)
            begins = np.concatenate([[0], np.cumsum(sizes)]) + 4 * (samples + 2)
            if begins[-1] > _MOST:
                raise ValueError("its samples have more bytes than a chunk can")
            with Path(target).open("wb") as out:
                out.write(np.uint32(samples).tobytes() + begins.astype("<u4").tobytes())
                for piece in pieces:
                    out.write(piece)
                if out.tell() != begins[-1]:
                    raise ValueError("its frames do not hold the bytes that its places say")
        except (ValueError, OSError) as error:  # pyarrow's errors are both
            if getattr(error, "errno", None) is not None:
                raise
            raise ValueError(f"{path} is damaged: {error}") from error

    return made_once(path, (level, samples), ".bin", cache, make)


def _read_frames(data: memoryview, samples: int) -> Fields:
    """Returns the samples of a chunk with a table of frames."""
    if len(data) < _PREFIX.itemsize or bytes(data[:8]) != _MAGIC:
        raise ValueError("it does not begin as a chunk with frames")
    prefix = np.frombuffer(data, _PREFIX, 1)[0]
    if prefix["version"] != 1 or prefix["flags"] != 0:
        raise ValueError(f"the version of its frames is {prefix['version']}, flags {prefix['flags']}; 1, 0 is read")
    table = _PREFIX.itemsize + 4 * (samples + 1)
    end = table + _FRAME.itemsize * int(prefix["k"])
    if prefix["n"] != samples or len(data) < end:
        raise ValueError(f"it does not begin with the places of {samples} samples")
    places = np.frombuffer(data, "<u4", samples + 1, _PREFIX.itemsize).astype(np.int64)
    frames = np.frombuffer(data, _FRAME, int(prefix["k"]), table)
    ends = np.cumsum(frames["items"], dtype=np.int64)
    firsts = ends - frames["items"]
    at, packed = frames["at"], frames["packed"].astype(np.uint64)
    inside = (at >= end) & (at <= len(data)) & (packed <= np.uint64(len(data)) - np.minimum(at, np.uint64(len(data))))
    sizes = np.diff(places)
    if places[0] != 0 or (sizes < 0).any() or not inside.all() or not np.array_equal(firsts, frames["first"]):
        raise ValueError("its samples are not within its frames")
    if (int(ends[-1]) if len(ends) else 0) != samples or not np.array_equal(
        np.diff(places[np.r_[0, ends]]), frames["size"]
    ):
        raise ValueError("its samples do not fill its frames")
    return sizes, _decompress_frames(data, frames)


def _decompress_frames(data: memoryview, frames: npt.NDArray[np.void]) -> Iterator[bytes]:
    codec = pyarrow().Codec("zstd")
    for _, _, at, packed, size in frames.tolist():
        yield codec.decompress(data[at : at + packed], decompressed_size=size, asbytes=True) if size else b""


def _read_samples(data: memoryview, samples: int) -> Fields:
    """Returns the samples of a chunk in which each one is a frame."""
    table = 4 * (samples + 2)
    count = int(np.frombuffer(data, "<u4", 1)[0]) if len(data) >= table else -1
    if count != samples:
        raise ValueError(f"it does not begin with the places of {samples} samples")
    bounds = np.frombuffer(data, "<u4", samples + 1, 4).astype(np.int64)
    if bounds[0] < table or (np.diff(bounds) < 0).any() or bounds[-1] > len(data):
        raise ValueError("its samples are not within it")
    places = bounds.tolist()
    frames = [data[begin:end] for begin, end in pairwise(places)]
    # A frame does not say its size: the samples are decompressed twice, to know the places first.
    sizes, total = [], 0
    for frame in frames:
        sizes.append(sum(len(piece) for piece in _decompress_frame(frame, _MOST - total)))
        total += sizes[-1]
    return np.array(sizes, np.int64), (piece for frame in frames for piece in _decompress_frame(frame, _MOST))


def _decompress_frame(frame: object, most: int) -> Iterator[bytes]:
    pa = pyarrow()
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(frame)), "zstd") as stream:
        for piece in iter(partial(stream.read, _PIECE), b""):
            most -= len(piece)
            if most < 0:
                raise ValueError("its samples have more bytes than a chunk can")
            yield piece
