"""The bytes of a file that Pillow has opened, and what must be as Pillow has made it for headrace to read them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageFile

from headrace.pillow.recording.patches import Untouched

#: Bytes of a file beyond what its pixels can take: Pillow does not read them.
TRAILING = 1 << 20
_FILES = (io.BufferedReader, io.BytesIO)  # types of files that are read
# Attributes of an image by which a program takes part in loading it.
_STEPS_OF_LOAD = frozenset(["load_read", "load_seek", "load_prepare", "load_end", "tile_prefix"])
_pread: Callable[[int, int, int], bytes] | None = getattr(os, "pread", None)  # not on Windows


def why_not_readable(image: ImageFile.ImageFile) -> str | None:
    """Returns why an image's file is not read; None if it is of a type that is."""
    return None if type(image.fp) in _FILES else f"read through a {type(image.fp).__name__}"


def why_not_as_opened(image: ImageFile.ImageFile, loading: Untouched, decoder: str) -> str | None:
    """Returns what a program has changed since Pillow opened an image; None if Pillow's functions would load it.

    Args:
        loading: Pillow's functions that load images of its class.
        decoder: name of the native decoder that they use.
    """
    own = image.__dict__
    if own.get("_im", own.get("im")) is not None:
        return "changed before it was loaded"
    reason = why_not_readable(image)
    if reason is None and (not loading or decoder in Image.DECODERS or not _STEPS_OF_LOAD.isdisjoint(own)):
        return "loaded by functions of the program"
    return reason


def leave_loaded(image: ImageFile.ImageFile) -> None:
    """Sets what Pillow's ``load`` leaves, other than pixels."""
    image.tile, image.readonly, image.map = [], 0, None
    if image._exclusive_fp and image.fp is not None:
        image.fp.close()
    image.fp = None


def read_contents(file: Any, most: int, own: bool) -> bytes | None:
    """Returns a file's bytes; None if there are more than `most`: then the file stays where it is, with what its buffer
    holds.

    Args:
        own: whether Pillow has opened the file, which is closed next.
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
