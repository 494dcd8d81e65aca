"""Reads all but the samples from objects in other machines: whole ones, long ranges, many short ones, or as a file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._storage.parts.span_file import SpanFile
from headrace._storage.remote.remote_files import RemoteFiles

Int64s = npt.NDArray[np.int64]

_PIECE = 8 << 20  # bytes of a request
_GAP = 64 << 10  # bytes between two short ranges that are read as well, to save a request


def read_long(files: RemoteFiles, number: int, begin: int, end: int) -> bytes:
    """Returns a range of an object, read in pieces at the same time. Raises OSError."""
    assert files.stamps is not None
    url, stamp, fetcher = files.urls[number], files.stamps[number], files.fetcher

    async def pieces() -> list[bytes]:
        places = [(at, min(at + _PIECE, end)) for at in range(begin, end, _PIECE)]
        return list(await asyncio.gather(*(fetcher.read(url, files.options, *place, stamp) for place in places)))

    return b"".join(fetcher.wait(pieces())) if end > begin else b""


def read_short(files: RemoteFiles, number: int, begins: Int64s, length: int) -> npt.NDArray[np.uint8]:
    """Returns `length` bytes of an object from each of `begins` on, ascending: uint8 (n, length). Raises OSError."""
    made = np.empty((len(begins), length), np.uint8)
    if len(begins) == 0 or length == 0:
        return made
    assert files.stamps is not None
    url, stamp, fetcher = files.urls[number], files.stamps[number], files.fetcher
    firsts = np.flatnonzero(np.r_[True, np.diff(begins) > _GAP + length])
    ends = np.r_[firsts[1:], len(begins)]

    async def all_of_them() -> None:
        async def one(first: int, end: int) -> None:
            base = int(begins[first])
            data = await fetcher.read(url, files.options, base, int(begins[end - 1]) + length, stamp)
            at = (begins[first:end] - base)[:, None] + np.arange(length)
            made[first:end] = np.frombuffer(data, np.uint8)[at]

        await asyncio.gather(*(one(*group) for group in zip(firsts.tolist(), ends.tolist(), strict=True)))

    fetcher.wait(all_of_them())
    return made


def copy_file(files: RemoteFiles, number: int, target: str) -> None:
    """Writes an object to a file of this machine. Raises OSError."""
    assert files.stamps is not None
    size, at_once = files.stamps[number].size, 8 * _PIECE
    with Path(target).open("wb") as out:
        for begin in range(0, size, at_once):
            out.write(read_long(files, number, begin, min(begin + at_once, size)))


class RangeFile(SpanFile):
    """An object as a file for reading, each read a range. Raises OSError."""

    def __init__(self, files: RemoteFiles, number: int = 0) -> None:
        assert files.stamps is not None
        super().__init__(files.stamps[number].size)
        self._files, self._number = files, number

    def size(self) -> int:
        """Returns the object's bytes; called by pyarrow."""
        return self._size

    def _read_span(self, begin: int, end: int) -> bytes:
        return read_long(self._files, self._number, begin, end)
