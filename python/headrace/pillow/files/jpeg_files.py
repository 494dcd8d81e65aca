"""Reads JPEG files that Pillow has opened, where it would decode them."""

from __future__ import annotations

import os

from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile

from headrace._base.native import core
from headrace.pillow.files.contents import TRAILING, read_contents, why_not_as_opened, why_not_readable
from headrace.pillow.files.jpeg_pixels import JpegPixels
from headrace.pillow.files.pixels import FilePixels
from headrace.pillow.recording.image_counts import ImageCounts
from headrace.pillow.recording.lazy_core import MOST_PIXELS
from headrace.pillow.recording.patches import Untouched

_COMPONENTS = {"RGB": 3, "L": 1}  # mode -> components of a file from which Pillow makes it; a draft's L has three
_WHOLE = ((), (1, 0))  # what decodes a file in its own size

_LOADING = Untouched(
    (ImageFile.ImageFile, "load"),
    (JpegImageFile, "load_read"),
    (JpegImageFile, "load_prepare"),
    (JpegImageFile, "load_end"),
    (JpegImageFile, "_close_fp"),
    (Image.Image, "load"),
    (Image, "_getdecoder"),
    (getattr(Image, "core"), "jpeg_decoder"),  # noqa: B009 - not among what Pillow's types export
)


def why_not_deferrable(image: JpegImageFile) -> str | None:
    """Returns why an image of Pillow's class for JPEGs cannot be deferred; None if it can."""
    if image.mode not in _COMPONENTS:
        return f"JPEG of mode {image.mode}"
    return why_not_readable(image)


def read(image: JpegImageFile, counts: ImageCounts) -> tuple[FilePixels | None, str | None]:
    """Reads a file where Pillow would decode it; returns None and the reason if Pillow has to."""
    reason = _why_pillow_must_decode(image)
    if reason is not None:
        return None, reason
    file, reason = _read_jpeg(image)
    if file is None:
        return None, reason
    pixels = JpegPixels(file, image.size, image.mode, counts)
    pixels.name = os.fsdecode(image.filename) if isinstance(image.filename, (str, bytes)) else ""
    return pixels, None


def _why_pillow_must_decode(image: JpegImageFile) -> str | None:
    """Returns why Pillow has to decode a file; None if it would decode it now, to RGB or L, and whole: not after a
    ``draft`` that shrinks it, or when the program has changed what is decoded or how."""
    mode, (width, height) = image.mode, image.size
    if image.fp is None or image.decoderconfig not in _WHOLE or mode not in _COMPONENTS:
        return "after draft(), closed or huge"
    if width * height > MOST_PIXELS:
        return "after draft(), closed or huge"
    if type(image.tile) is not list or image.tile != [("jpeg", (0, 0, width, height), 0, (mode, ""))]:
        return "changed before it was loaded"
    if image.palette is not None:
        return "changed before it was loaded"
    return why_not_as_opened(image, _LOADING, "jpeg")


def _read_jpeg(image: JpegImageFile) -> tuple[core.JpegFile | None, str | None]:
    """Reads a file; returns None and the reason if Pillow has to decode it, maybe to raise an error.

    Note [plain files]: Pillow raises no error about a file whose header is plain, whatever its entropy-coded data are.
    Huffman decoding by libjpeg has no errors, only warnings, which Pillow does not show. It needs no bytes after the
    marker that ends a scan, and gets to that marker from any data: the restart markers on the way are complete and in
    order. After it come sound segments and at last an EOI, so the file is never truncated for it.
    """
    try:
        data = read_contents(image.fp, TRAILING + 6 * image.width * image.height, image._exclusive_fp)
        if data is None:
            return None, "followed by other data"
        file = core.JpegFile(data)
    except core.NeedsPillow as error:
        return None, str(error)
    except (OSError, ValueError):  # closed, unreadable
        return None, "not readable"
    if (file.width, file.height, file.components) != (*image.size, _COMPONENTS[image.mode]):
        return None, "the file has changed since it was opened"
    return file, None
