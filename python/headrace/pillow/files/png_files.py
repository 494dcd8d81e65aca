"""Reads PNG files that Pillow has opened, where it would decode them."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageFile
from PIL.PngImagePlugin import PngImageFile

from headrace._base.native import core
from headrace.pillow.files.contents import TRAILING, read_contents, why_not_as_opened, why_not_readable
from headrace.pillow.files.decoded_pixels import RAW_MODES, DecodedPixels
from headrace.pillow.files.pixels import FilePixels
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import ImageCounts
from headrace.pillow.recording.lazy_core import MOST_PIXELS
from headrace.pillow.recording.patches import Untouched

_MOST_BYTES = 8  # of a pixel in a file
#: (mode, raw mode) of an image -> (colour type, bits a sample) of its file.
_DECODED = {
    ("1", "1"): (0, 1),
    ("L", "L;2"): (0, 2),
    ("L", "L;4"): (0, 4),
    ("L", "L"): (0, 8),
    ("I;16", "I;16B"): (0, 16),
    ("I", "I;16B"): (0, 16),  # before Pillow 11
    ("RGB", "RGB"): (2, 8),
    ("RGB", "RGB;16B"): (2, 16),
    ("P", "P;1"): (3, 1),
    ("P", "P;2"): (3, 2),
    ("P", "P;4"): (3, 4),
    ("P", "P"): (3, 8),
    ("LA", "LA"): (4, 8),
    ("RGBA", "LA;16B"): (4, 16),
    ("RGBA", "RGBA"): (6, 8),
    ("RGBA", "RGBA;16B"): (6, 16),
}

_LOADING = Untouched(
    (ImageFile.ImageFile, "load"),
    (PngImageFile, "load_read"),
    (PngImageFile, "load_prepare"),
    (ImageFile.ImageFile, "load_prepare"),
    (ImageFile.ImageFile, "_close_fp"),
    (Image.Image, "load"),
    (Image, "_getdecoder"),
    (getattr(Image, "core"), "zip_decoder"),  # noqa: B009 - not among what Pillow's types export
)


def why_not_deferrable(image: PngImageFile) -> str | None:
    """Returns why an image of Pillow's class for PNGs cannot be deferred; None if it can."""
    if image.mode not in RAW_MODES:
        return f"PNG of mode {image.mode}"
    if image.is_animated:
        return "animated PNG"
    return why_not_readable(image)


def read(image: PngImageFile, counts: ImageCounts) -> tuple[FilePixels | None, str | None]:
    """Reads and decodes a file where Pillow would decode it; returns None and the reason if Pillow has to, maybe to
    raise an error.

    What follows the data is read by Pillow's ``load_end``: texts there come into the image's ``info``.
    """
    reason = _why_pillow_must_decode(image)
    if reason is not None:
        return None, reason
    try:
        data = read_contents(image.fp, TRAILING + _MOST_BYTES * image.width * image.height, image._exclusive_fp)
        if data is None:
            return None, "followed by other data"
        file = core.PngFile(data)
        if (file.width, file.height) != image.size or (file.colour, file.depth) != _kind_of(image):
            return None, "the file has changed since it was opened"
        samples = pixel_memory.empty_for_a_while((file.height, file.width, file.pixel_bytes), np.dtype(np.uint8))
        core.decode_png(file, samples)
    except core.NeedsPillow as error:
        return None, str(error)
    except (OSError, ValueError):  # closed, unreadable
        return None, "not readable"
    setattr(image, _IDAT, 0)
    image.fp.seek(file.data_end)  # type: ignore[union-attr]  # it was read
    image.load_end()
    return DecodedPixels(samples, image.mode, counts), None


_IDAT = "_PngImageFile__idat"  # bytes of the data that `load_end` still has to read


def _why_pillow_must_decode(image: PngImageFile) -> str | None:
    width, height = image.size
    if image.fp is None or image.decoderconfig != () or width * height > MOST_PIXELS:
        return "after draft(), closed or huge"
    if _kind_of(image) is None:
        return "changed before it was loaded"
    return why_not_as_opened(image, _LOADING, "zip")


def _kind_of(image: PngImageFile) -> tuple[int, int] | None:
    """Returns colour type and bits a sample of the file that an image is decoded from; None if it is not decoded as
    Pillow's class would."""
    if type(image.tile) is not list or len(image.tile) != 1:
        return None
    decoder, box, _, raw = image.tile[0]
    if decoder != "zip" or box != (0, 0, *image.size) or not isinstance(raw, str):
        return None
    return _DECODED.get((image.mode, raw))
