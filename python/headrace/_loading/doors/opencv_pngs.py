"""Arrays that OpenCV makes of PNG files: those that are made natively, as a comparison with OpenCV itself shows."""

from __future__ import annotations

import functools
import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from headrace._base.native import core
from headrace._base.types import Array
from headrace.pillow.files.decoded_pixels import look_up_colours

SIGNATURE = b"\x89PNG\r\n\x1a\n"
UNCHANGED = -1
COLOR, ANYDEPTH, ANYCOLOR, RGB = 1, 2, 4, 256  # cv2.IMREAD_*
_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGBA = 0, 2, 3, 4, 6  # colour types of PNGs
_SHAPE = 7, 13  # of compared images
_CHANNELS = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGBA: 4}

#: OpenCV's function that decodes bytes, given these and flags.
Decoder = Callable[[Array, int], Any]


class Kind(NamedTuple):
    """A kind of PNG, and how it is read."""

    colour: int
    depth: int
    flags: int


def decode(encoded: bytes, flags: int, plain: Decoder) -> Array | str:
    """Returns the array that OpenCV makes of a PNG, or the reason why it has to make it.

    Args:
        encoded: the file.
        flags: as of `cv2.imdecode`.
        plain: OpenCV's own function.
    """
    try:
        file = core.PngFile(encoded)
        if file.transparency or file.described:
            return "PNG with transparency, text or EXIF"
        kind = Kind(file.colour, file.depth, flags)
        if not _is_native(kind, plain):
            return "PNG of a depth or colour that OpenCV converts"
        made = _make(file, kind)
    except core.NeedsPillow as error:
        return str(error)
    return "PNG with an index beyond its palette" if made is None else made


def _make(file: core.PngFile, kind: Kind) -> Array | None:
    """Returns an array of a kind that is known; None for an index that the palette does not have."""
    cv2: Any = sys.modules["cv2"]
    wants_rgb, wants_colour = kind.flags & RGB, kind.flags & (COLOR | RGB)
    if kind.flags == UNCHANGED:
        wants_rgb = wants_colour = 0
    if kind.colour == _GRAY:
        gray = np.empty((file.height, file.width), "<u2" if kind.depth == 16 else np.uint8)  # OpenCV's owns its memory
        core.decode_png(file, gray.view(np.uint8).reshape(*gray.shape, -1))
        gray = gray.astype(gray.dtype.newbyteorder("="), copy=False)
        return cv2.cvtColor(gray, cv2.COLOR_GRAY2BGR) if wants_colour else gray
    samples = np.empty((file.height, file.width, file.pixel_bytes), np.uint8)
    core.decode_png(file, samples)
    if kind.colour == _PALETTE:
        table = np.zeros((256, 4), np.uint8)
        entries = np.frombuffer(file.palette, np.uint8).reshape(-1, 3)
        if int(samples.max()) >= len(entries):
            return None
        table[: len(entries), :3] = entries
        samples = look_up_colours(samples, table)
    if kind.colour == _RGBA and kind.flags == UNCHANGED:
        return cv2.cvtColor(samples, cv2.COLOR_RGBA2BGRA)  # type: ignore[no-any-return]
    if samples.shape[2] == 4:
        return cv2.cvtColor(samples, cv2.COLOR_RGBA2RGB if wants_rgb else cv2.COLOR_RGBA2BGR)  # type: ignore[no-any-return]
    return samples if wants_rgb else cv2.cvtColor(samples, cv2.COLOR_RGB2BGR)


@functools.cache
def _is_native(kind: Kind, plain: Decoder) -> bool:
    """Whether the installed OpenCV makes the array that `_make` makes of a kind."""
    if kind.colour == _GRAY_ALPHA or (kind.depth == 16 and kind.colour != _GRAY):
        return False
    for seed in range(3):
        encoded = sample_png(kind.colour, kind.depth, seed)
        expected = plain(np.frombuffer(encoded, np.uint8), kind.flags)
        made = _make(core.PngFile(encoded), kind)
        if expected is None or made is None or (expected.shape, expected.dtype) != (made.shape, made.dtype):
            return False
        if not np.array_equal(expected, made):
            return False
    return True


def sample_png(colour: int, depth: int, seed: int) -> bytes:
    """Returns a small PNG of a colour type and depth, without filters."""
    random, (height, width) = np.random.default_rng(seed), _SHAPE
    row = (width * _CHANNELS[colour] * depth + 7) // 8
    rows = b"".join(b"\0" + random.bytes(row) for _ in range(height))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))]
    if colour == _PALETTE:
        parts.append((b"PLTE", random.bytes(3 << depth)))
    parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
