"""PNG files of every kind, written here chunk by chunk: Pillow writes few of them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: (colour type, bits a sample).
KINDS = [
    *((0, depth) for depth in (1, 2, 4, 8, 16)),
    *((2, depth) for depth in (8, 16)),
    *((3, depth) for depth in (1, 2, 4, 8)),
    *((4, depth) for depth in (8, 16)),
    *((6, depth) for depth in (8, 16)),
]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
RANDOM = -1  # another filter for each row


def chunk(name: bytes, data: bytes = b"", *, sum_off_by: int = 0) -> bytes:
    check = (zlib.crc32(name + data) + sum_off_by) & 0xFFFFFFFF
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)


def header(width: int, height: int, colour: int, depth: int, *, interlaced: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))


def rows_of(width: int, height: int, colour: int, depth: int, seed: int) -> list[bytes]:
    """The rows of an image that is smooth with some noise, as a file packs them."""
    rng = np.random.default_rng(seed)
    bits = width * CHANNELS[colour] * depth
    size = (bits + 7) // 8
    ramp = np.add.outer(np.arange(height), np.arange(size)) * rng.integers(1, 9)
    values = ((ramp + rng.integers(0, 40, ramp.shape)) & 255).astype(np.uint8)
    return [row.tobytes() for row in values]


def predictor(left: int, above: int, corner: int) -> int:
    """Paeth's."""
    guess = left + above - corner
    return min((left, above, corner), key=lambda one: abs(guess - one))


def filtered(rows: Sequence[bytes], pixel: int, filters: Sequence[int]) -> bytes:
    """The rows after their filters, each with its number before it."""
    made, above = bytearray(), bytes(len(rows[0]))
    for row, number in zip(rows, filters, strict=True):
        made.append(number)
        for i, value in enumerate(row):
            left, corner = (row[i - pixel], above[i - pixel]) if i >= pixel else (0, 0)
            taken = (0, left, above[i], (left + above[i]) // 2, predictor(left, above[i], corner))[number]
            made.append((value - taken) & 255)
        above = row
    return bytes(made)


def png(
    width: int = 23,
    height: int = 11,
    colour: int = 2,
    depth: int = 8,
    *,
    filter: int = RANDOM,
    seed: int = 0,
    parts: int = 1,
    before: bytes = b"",
    after: bytes = b"",
    entries: int | None = None,
) -> bytes:
    """A file of one kind.

    Args:
        filter: of all rows.
        parts: number of IDAT chunks.
        before, after: chunks before and after the data.
        entries: of the palette; None: as many as the depth allows.
    """
    rows = rows_of(width, height, colour, depth, seed)
    rng = np.random.default_rng(seed)
    filters = [int(rng.integers(5)) if filter == RANDOM else filter for _ in rows]
    data = zlib.compress(filtered(rows, max(1, CHANNELS[colour] * depth // 8), filters), 6)
    cuts = [len(data) * i // parts for i in range(parts + 1)]
    palette = bytes(rng.integers(0, 256, 3 * (2**depth if entries is None else entries), dtype=np.uint8))
    return b"".join(
        [
            SIGNATURE,
            header(width, height, colour, depth),
            chunk(b"PLTE", palette) if colour == 3 else b"",
            before,
            *(chunk(b"IDAT", data[a:b]) for a, b in pairwise(cuts)),
            after,
            chunk(b"IEND"),
        ]
    )


TEXTS = chunk(b"tEXt", b"Title\0a name") + chunk(b"zTXt", b"More\0\0" + zlib.compress(b"words " * 9))
EXIF = chunk(b"eXIf", bytes.fromhex("49492a00080000000100120103000100000006000000") + bytes(4))


def sound_pngs() -> Iterator[bytes]:
    """Files that Pillow decodes."""
    for number, (colour, depth) in enumerate(KINDS):
        yield png(19 + number, 13, colour, depth, seed=number)
    for filter in range(5):
        yield png(17, 9, 2, 8, filter=filter)
        yield png(17, 9, 0, 16, filter=filter)
    for width, height in ((1, 1), (1, 7), (7, 1), (2, 2), (3, 1)):
        for colour in CHANNELS:
            yield png(width, height, colour, 8)
    yield png(parts=5)
    yield png(parts=3, before=chunk(b"gAMA", struct.pack(">I", 45455)) + TEXTS)
    yield png(before=TEXTS, after=TEXTS + chunk(b"tIME", bytes(7)))
    yield png(before=chunk(b"pHYs", struct.pack(">IIB", 2835, 2835, 1)) + EXIF)
    yield png(colour=0, before=chunk(b"tRNS", b"\0\x20"))
    yield png(colour=2, before=chunk(b"tRNS", b"\0\x20\0\x30\0\x40"))
    yield png(colour=3, before=chunk(b"tRNS", b"\xff\xff\0\xff"))
    yield png(colour=3, before=chunk(b"tRNS", bytes(range(200))))
    yield png(colour=3, depth=4, before=chunk(b"bKGD", b"\1"))
    yield png(before=chunk(b"iCCP", b"profile\0\0" + zlib.compress(bytes(3000))))


def odd_pngs() -> Iterator[bytes]:
    """Files that Pillow refuses, warns of, or decodes although something is wrong with them."""
    good = png()
    for end in (7, 8, 20, 33, 40, len(good) - 12, len(good) - 20, len(good) - 1):
        yield good[:end]
    yield good + b"more"
    yield png(colour=3, entries=40)  # indices beyond the palette
    yield png(colour=3).replace(b"PLTE", b"PLTX")
    yield SIGNATURE + header(4, 4, 2, 8) + chunk(b"IEND")
    for bits in ((2, 4), (3, 16), (1, 8), (0, 3)):
        yield SIGNATURE + header(4, 4, *bits) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND")
    rows = bytes(8 * (1 + 3 * 8))
    for data in (
        zlib.compress(rows[:-1]),  # too little
        zlib.compress(rows + b"\0"),  # too much
        zlib.compress(rows)[:-1],
        zlib.compress(rows)[:-4] + b"\0\0\0\0",  # a wrong sum
        zlib.compress(b"\5" + rows[1:]),  # no such filter
        zlib.compress(rows) + b"more",
        b"",
        b"\x78",
    ):
        yield SIGNATURE + header(8, 8, 2, 8) + chunk(b"IDAT", data) + chunk(b"IEND")
    yield SIGNATURE + header(8, 8, 2, 8, interlaced=1) + chunk(b"IDAT", zlib.compress(rows * 3)) + chunk(b"IEND")
    data = chunk(b"IDAT", zlib.compress(rows))
    for more in (
        chunk(b"tEXt", b"Title\0name", sum_off_by=1),
        chunk(b"tRNS", b"\0"),
        chunk(b"gAMA", b"\0"),
        chunk(b"zTXt", b"Title\0\7name"),
        chunk(b"iCCP", b"name\0\1none"),
        chunk(b"iCCP", b"name"),
        chunk(b"zTXt", b"Large\0\0" + zlib.compress(bytes(3 << 20))),
        chunk(b"acTL", struct.pack(">II", 2, 0)),
        chunk(b"fcTL", bytes(26)),
        chunk(b"xxXx", b"unknown"),
        chunk(b"IHDR", bytes(13)),
    ):
        yield SIGNATURE + header(8, 8, 2, 8) + more + data + chunk(b"IEND")
        yield SIGNATURE + header(8, 8, 2, 8) + data + more + chunk(b"IEND")
    yield SIGNATURE + header(8, 8, 2, 8) + data + TEXTS + data + chunk(b"IEND")
    yield SIGNATURE + header(8, 8, 2, 8) + chunk(b"IDAT", zlib.compress(rows), sum_off_by=1) + chunk(b"IEND")
