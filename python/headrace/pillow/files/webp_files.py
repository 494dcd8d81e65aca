"""Reads WebP files that Pillow has opened, where it would decode them.

Pillow's own decoder decodes them: it holds the file's bytes from the time it is opened. Its pixels are taken from
there, without the image that Pillow would make of them, so that crops, resizes and tensors are native.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image, ImageFile
from PIL.WebPImagePlugin import WebPImageFile

from headrace._base.types import Array
from headrace.pillow.files.contents import leave_loaded, why_not_as_opened, why_not_readable
from headrace.pillow.files.decoded_pixels import DecodedPixels
from headrace.pillow.files.pixels import FilePixels
from headrace.pillow.recording.image_counts import ImageCounts, in_force
from headrace.pillow.recording.lazy_core import MOST_PIXELS
from headrace.pillow.recording.patches import Replacements, Untouched, method

#: Mode of an image -> the layout of its decoder's pixels.
_LAYOUTS = {"RGB": "RGBX", "RGBA": "RGBA"}

_LOADING = Untouched(
    (WebPImageFile, "load"),
    (WebPImageFile, "load_seek"),
    (WebPImageFile, "_get_next"),
    (WebPImageFile, "_reset"),
    (WebPImageFile, "_seek"),
    (WebPImageFile, "load_read"),
    (WebPImageFile, "load_end"),
    (WebPImageFile, "load_prepare"),
    (ImageFile.ImageFile, "load"),
    (Image.Image, "load"),
    (Image, "_getdecoder"),
    (getattr(Image, "core"), "raw_decoder"),  # noqa: B009 - not among what Pillow's types export
)
_AS_OPENED = {  # what Pillow keeps of an image of which it has decoded no frame
    "_WebPImageFile__logical_frame": 0,
    "_WebPImageFile__loaded": -1,
    "_WebPImageFile__physical_frame": 0,
    "_WebPImageFile__timestamp": 0,
}

# Files that a comparison decodes, of two pixels each: lossy, and lossless with a transparent one.
_SMALL = (
    bytes.fromhex(
        "524946462e0000005745425056503820220000007001009d012a020001000fc0fe25a0027401400000f186184c13aeb8b9b22d200000"
    ),
    bytes.fromhex(
        "524946462a000000574542505650384c1d0000002f010000100fa0206d031675771108246df1b67fffc3f60f1588e87f0000"
    ),
)


def why_not_deferrable(image: WebPImageFile) -> str | None:
    """Returns why an image of Pillow's class for WebPs cannot be deferred; None if it can."""
    if getattr(image, "is_animated", True):
        return "animated WEBP"
    if not _LOADING or not _is_loaded_as_by_pillow():
        return "WEBP loaded by functions of the program"
    return why_not_readable(image)


def read(image: WebPImageFile, counts: ImageCounts) -> tuple[FilePixels | None, str | None]:
    """Decodes a file where Pillow would decode it; returns None and the reason if Pillow has to.

    Raises:
        OSError, EOFError: as Pillow's ``load``, of a damaged file.
    """
    reason = _why_pillow_must_decode(image)
    samples = _decode(image) if reason is None else None
    if samples is None:
        return None, reason or "changed before it was loaded"
    return DecodedPixels(samples, image.mode, counts), None


def _why_pillow_must_decode(image: WebPImageFile) -> str | None:
    if image.decoderconfig != () or image.width * image.height > MOST_PIXELS:
        return "after draft(), closed or huge"
    are_as_opened = all(getattr(image, name, None) == value for name, value in _AS_OPENED.items())
    if not are_as_opened or image.tile != [] or _LAYOUTS.get(image.mode) != getattr(image, "rawmode", None):
        return "changed before it was loaded"
    return why_not_as_opened(image, _LOADING, "raw")


def _decode(image: Any) -> Array | None:
    """Returns the pixels (height, width, 4) as Pillow's ``load`` decodes them; None if the image has another size."""
    data, timestamp, duration = image._get_next()
    if len(data) != 4 * image.width * image.height:
        image._reset()
        return None
    image.info["timestamp"], image.info["duration"] = timestamp, duration
    image._WebPImageFile__loaded = 0
    return np.frombuffer(data, np.uint8).reshape(image.height, image.width, 4)


@functools.cache
def _is_loaded_as_by_pillow() -> bool:
    """Whether the installed Pillow leaves an image that it has loaded as this module does."""
    try:
        return in_force.call_as_usual(lambda: all(map(_is_small_file_loaded_as_by_pillow, _SMALL)))
    except Exception:  # a Pillow with other methods
        return False


def _is_small_file_loaded_as_by_pillow(data: bytes) -> bool:
    ours, theirs = (WebPImageFile(io.BytesIO(data)) for _ in range(2))
    theirs.load()
    if _why_pillow_must_decode(ours) is not None:
        return False
    samples = _decode(ours)
    leave_loaded(ours)
    layout = _LAYOUTS[theirs.mode]
    return samples is not None and _state(ours) == _state(theirs) and samples.tobytes() == theirs.tobytes("raw", layout)


def _state(image: WebPImageFile) -> dict[str, Any]:
    """The attributes of an image other than its pixels."""
    return {name: value for name, value in vars(image).items() if name not in ("im", "_im", "_decoder")}


def _read_first(plain: Callable[[Any], object]) -> Callable[[Any], object]:
    @functools.wraps(plain)
    def load(self: WebPImageFile) -> object:
        unread = self.__dict__.get("_unread")
        if unread is not None:
            unread.read(self)
        return plain(self)

    return load


#: Pillow's class has a method ``load`` of its own: this one reads deferred images before.
LOAD: Replacements = Replacements([method("PIL.WebPImagePlugin", "WebPImageFile", "load", _read_first)])
