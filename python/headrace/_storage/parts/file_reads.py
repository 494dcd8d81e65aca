"""Reads of samples that are ranges of files, which must be the files that were indexed."""

from __future__ import annotations

import os
from typing import NoReturn

Span = tuple[int, int]  # position in the bytes, number of bytes


def stamp_of(info: os.stat_result) -> tuple[int, int]:
    """Returns (size in bytes, time of modification in ns) of a file."""
    return info.st_size, info.st_mtime_ns


def read_range(path: str, offset: int, length: int, stamp: tuple[int, ...]) -> bytes:
    """Returns `length` bytes of a file.

    Raises:
        OSError: the file cannot be read, or it is not the one that `stamp` was taken of.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - once per sample
        return read_part(file.fileno(), path, (offset, length), (0, length), stamp)


def read_part(descriptor: int, path: str, sample: Span, part: Span, stamp: tuple[int, ...] | None) -> bytes:
    """Returns a part of a sample in an open file.

    Args:
        path: of the file, for messages.
        sample: the range of the file.
        part: of the sample.
        stamp: of the file when it was indexed; it is compared after the read. None: any, and fewer bytes are
            returned at the end of the file.

    Raises:
        OSError: the file cannot be read, or it is not the one that `stamp` was taken of.
    """
    begin, count = sample[0] + part[0], part[1]
    data = os.pread(descriptor, count, begin)
    while data and len(data) < count and (more := os.pread(descriptor, count - len(data), begin + len(data))):
        data += more
    if stamp is not None:
        check_stamp(os.fstat(descriptor), path, sample, stamp)
        if len(data) < count:  # it was shorter during the read
            _raise_truncated(path, sample, part[0] + len(data))
    return data


def check_stamp(info: os.stat_result, path: str, sample: Span, stamp: tuple[int, ...]) -> None:
    """Raises OSError if a file is not the one that `stamp` was taken of. `sample`: the range of it, for messages."""
    offset, length = sample
    if info.st_size < offset + length:
        _raise_truncated(path, sample, max(0, info.st_size - offset))
    if stamp_of(info) != stamp:
        raise OSError(
            f"{path} was changed after it was indexed (offset {offset}; {stamp[0]} bytes then, {info.st_size} now): "
            "create the dataset again"
        )


def _raise_truncated(path: str, sample: Span, left: int) -> NoReturn:
    raise OSError(
        f"{path} ends {left} bytes after offset {sample[0]}, where the sample has {sample[1]} bytes: it was truncated "
        "after it was indexed; restore it, or create the dataset again"
    )
