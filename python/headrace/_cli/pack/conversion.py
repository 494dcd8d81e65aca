"""What a pack stores for an image: the bytes as they are, a lossless rewriting, or a smaller image; how for videos."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

from PIL import ExifTags, Image

from headrace._base.native import core
from headrace.transforms import CenterCrop, Resize

LOSSLESS, COPY, SMALLER, RAW = "lossless", "copy", "smaller", "raw"
REMUX, REENCODE = "remux", "reencode"  # of videos
QUALITY = 90  # if none is given
CRF = 18  # if none is given
_JPEG = b"\xff\xd8\xff"
MOST_CAUSES = 80  # characters of a reason


@dataclass(frozen=True)
class Conversion:
    """How images or videos are stored.

    Attributes:
        kind: LOSSLESS, COPY or SMALLER; RAW: as rows of an array; of videos REMUX, REENCODE or COPY.
        max_size: for SMALLER, the most pixels of an image's shorter side; for RAW, the side of all images.
        quality: for SMALLER, of the JPEG files.
        gop: for REENCODE, the most frames from key frame to key frame.
        crf: for REENCODE, x264's constant rate factor; None: `CRF`.
        video: whether the samples are videos.
    """

    kind: str = LOSSLESS
    max_size: int | None = None
    quality: int | None = None
    gop: int | None = None
    crf: int | None = None
    video: bool = False


class Converted(NamedTuple):
    """What is stored for one image or video."""

    data: bytes
    extension: str | None  # None: that of the source
    kept: str | None  # why the bytes are the source's; None if they are not
    counts: Mapping[str, float] = {}  # of a video: what the pack's record adds up


def convert_image(data: bytes, how: Conversion) -> Converted:
    """Returns what is stored for an encoded image.

    An image that cannot be converted is kept as it is, whatever is wrong with it.
    """
    if how.kind == COPY:
        return Converted(data, None, "copied")
    if how.kind == SMALLER:
        try:
            made = shrink_image(data, how)
        except Exception as error:  # Pillow raises many types for a broken file
            return Converted(data, None, f"cannot be decoded: {type(error).__name__}")
        if made is not None:
            return Converted(made, "jpg", None)
    if not data.startswith(_JPEG):
        return Converted(data, None, "not a JPEG")
    try:
        return Converted(rewrite_jpeg(data), None, None)
    except ValueError as error:
        return Converted(data, None, str(error)[:MOST_CAUSES])


def rewrite_jpeg(data: bytes) -> bytes:
    """Returns a JPEG with the same coefficients and metadata that a reader can enter at each row of blocks.

    Raises:
        ValueError: it cannot be rewritten; the message is the reason.
    """
    return core.pack_jpeg(data)


def shrink_image(data: bytes, how: Conversion) -> bytes | None:
    """Returns an image as a smaller JPEG, or None if its shorter side is not longer than ``how.max_size``.

    The size and the pixels are those of torchvision's ``Resize(max_size)`` on the image as Pillow opens it in mode RGB,
    before it is encoded. The EXIF orientation is kept: whether images are turned is the reader's choice.
    """
    assert how.max_size is not None
    with Image.open(BytesIO(data)) as image:
        if min(image.size) <= how.max_size:
            return None
        orientation = image.getexif().get(ExifTags.Base.Orientation)
        pixels = Resize(how.max_size)(image.convert("RGB"))
    exif = Image.Exif()
    if orientation not in (None, 1):
        exif[ExifTags.Base.Orientation] = orientation
    out = BytesIO()
    pixels.save(out, "JPEG", quality=how.quality or QUALITY, exif=exif)
    return out.getvalue()


def square_pixels(image: Image.Image, side: int) -> bytes:
    """Returns the RGB bytes (side, side, 3) of torchvision's ``Resize(side)`` and ``CenterCrop(side)``."""
    made: bytes = CenterCrop(side)(Resize(side)(image)).tobytes()
    return made
