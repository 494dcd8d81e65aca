"""What the decoder of PNGs says and writes for libraries that use libpng: whole samples, and which files are quiet."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from headrace._base.native import core
from png_samples import CHANNELS, EXIF, KINDS, TEXTS, chunk, png, rows_of

GAMMA = chunk(b"gAMA", struct.pack(">I", 45455))
PRIMARIES = chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))
SRGB, SIZE = chunk(b"sRGB", b"\0"), chunk(b"pHYs", struct.pack(">IIB", 2835, 2835, 1))
TEXT, TIME = chunk(b"tEXt", b"Title\0a name"), chunk(b"tIME", bytes([7, 230, 2, 28, 1, 2, 3]))


@pytest.mark.parametrize(("colour", "depth"), KINDS)
def test_whole_samples(colour: int, depth: int) -> None:
    file = core.PngFile(png(19, 13, colour, depth, seed=4))
    assert file.whole_bytes == CHANNELS[colour] * (2 if depth == 16 else 1)
    made = np.empty((13, 19, file.whole_bytes), np.uint8)
    core.decode_png(file, made, whole=True)
    rows = np.frombuffer(b"".join(rows_of(19, 13, colour, depth, 4)), np.uint8).reshape(13, -1)
    if depth == 16:
        assert np.array_equal(made.view("<u2"), rows.view(">u2").reshape(13, 19, -1))
    elif depth == 8:
        assert np.array_equal(made, rows.reshape(made.shape))
    else:
        bits = np.unpackbits(rows, axis=1)[:, : 19 * depth].reshape(13, 19, depth)
        values = bits @ (1 << np.arange(depth)[::-1])
        assert np.array_equal(made[..., 0], values * (255 // (2**depth - 1) if colour == 0 else 1))


def test_an_array_of_another_size_is_refused() -> None:
    file = core.PngFile(png(colour=2, depth=16))
    with pytest.raises(ValueError, match="whole_bytes"):
        core.decode_png(file, np.empty((file.height, file.width, 3), np.uint8), whole=True)


QUIET = {
    "nothing": (2, 8, b"", b""),
    "as editors write it": (6, 8, SRGB + GAMMA + PRIMARIES + SIZE + TEXT + TIME, b""),
    "text after": (2, 8, b"", TEXT),
    "background": (2, 8, chunk(b"bKGD", b"\0\1\0\2\0\xff"), b""),
    "background of a palette": (3, 4, chunk(b"bKGD", b"\x0f"), b""),
    "transparent gray": (0, 16, chunk(b"tRNS", b"\1\2"), b""),
    "transparent palette": (3, 2, chunk(b"tRNS", b"\0\1\2"), b""),
}
LOUD = {
    "another gamma": (2, 8, chunk(b"gAMA", struct.pack(">I", 100000)), b""),
    "other primaries": (2, 8, chunk(b"cHRM", struct.pack(">8I", *range(8))), b""),
    "twice": (2, 8, GAMMA + GAMMA, b""),
    "after": (2, 8, b"", SIZE),
    "after the palette": (3, 8, SRGB, b""),
    "EXIF": (2, 8, EXIF, b""),
    "compressed text": (2, 8, TEXTS, b""),
    "intent": (2, 8, chunk(b"sRGB", b"\4"), b""),
    "month": (2, 8, chunk(b"tIME", bytes(7)), b""),
    "sample beyond the depth": (0, 4, chunk(b"tRNS", b"\0\x10"), b""),
    "transparent RGBA": (6, 8, chunk(b"tRNS", b"\0\0\0\0\0\0"), b""),
    "index beyond the palette": (3, 2, chunk(b"bKGD", b"\4"), b""),
    "background of gray": (0, 8, chunk(b"bKGD", b"\0\1\0\2\0\3"), b""),
    "significant bits": (2, 8, chunk(b"sBIT", b"\5\6\5"), b""),
}


@pytest.mark.parametrize("name", [*QUIET, *LOUD])
def test_quiet_files(name: str) -> None:
    colour, depth, before, after = {**QUIET, **LOUD}[name]
    assert core.PngFile(png(colour=colour, depth=depth, before=before, after=after)).quiet == (name in QUIET)


def test_a_palette_of_more_entries_than_the_depth_allows() -> None:
    assert core.PngFile(png(colour=3, depth=2, entries=4)).quiet
    assert not core.PngFile(png(colour=3, depth=2, entries=5)).quiet
