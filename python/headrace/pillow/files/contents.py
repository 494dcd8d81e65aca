"""The bytes of a file that Pillow has opened, and what must be as Pillow has made it for headrace to read them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

#: Types of files that are read.
FILES = (io.BufferedReader, io.BytesIO)
#: Attributes of an image by which a program takes part in loading it.
STEPS_OF_LOAD = frozenset(["load_read", "load_seek", "load_prepare", "load_end", "tile_prefix"])
_pread: Callable[[int, int, int], bytes] | None = getattr(os, "pread", None)  # not on Windows


def read_contents(file: Any, most: int, own: bool) -> bytes | None:
    """Returns a file's bytes; None if there are more than `most`: then the file stays where it is, with what its buffer
    holds.

    Args:
        own: whether nobody else uses the file, which is closed next.
    """
    if type(file) is io.BytesIO:
        size = file.getbuffer().nbytes
    else:
        descriptor = file.fileno()
        size = os.fstat(descriptor).st_size
        if own and _pread is not None and 0 < size <= most and type(file.raw) is io.FileIO:
            data: bytes = _pread(descriptor, size, 0)  # file.read() makes four system calls, and a copy
            if len(data) == size:
                return data
    if size > most:
        return None
    file.seek(0)
    return bytes(file.read())
