"""The properties that the header of an encoded image states; nothing is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO

from PIL import ExifTags, Image

from headrace._base.native import core

_JPEG = b"\xff\xd8\xff"


@dataclass(frozen=True)
class FileHeader:
    """What a file says about itself.

    Attributes:
        format: Pillow's name: ``"JPEG"``, ``"PNG"``; ``"?"``: no format that Pillow knows.
        width, height: in pixels, before any turn; 0 if unknown.
        bytes: size of the file.
        progressive: whether it is a progressive JPEG.
        orientation: its EXIF orientation, 1 to 8; 1 if it has none.
        native: whether headrace's own threads decode it; others go to Pillow.
    """

    format: str
    width: int
    height: int
    bytes: int
    progressive: bool = False
    orientation: int = 1
    native: bool = False


def file_header(data: bytes) -> FileHeader:
    """Returns the properties of an encoded image. Never raises an error about the file."""
    if data[:3] == _JPEG:
        held = core.jpeg_header(data)
        return FileHeader(
            "JPEG",
            held["width"],
            held["height"],
            len(data),
            held["progressive"],
            held["exif_orientation"] or 1,
            held["not_plain"] is None,
        )
    try:
        with Image.open(BytesIO(data)) as image:
            turned = image.getexif().get(ExifTags.Base.Orientation, 1)
            orientation = turned if isinstance(turned, int) and 1 <= turned <= 8 else 1
            native = image.format == "PNG" and _is_plain_png(data)
            return FileHeader(image.format or "?", *image.size, len(data), orientation=orientation, native=native)
    except Exception:  # Pillow raises errors of many types about damaged files
        return FileHeader("?", 0, 0, len(data))


def _is_plain_png(data: bytes) -> bool:
    try:
        core.PngFile(data)
    except core.NeedsPillow:
        return False
    return True
