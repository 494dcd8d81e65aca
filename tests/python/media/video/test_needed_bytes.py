"""The boxes of MP4 files say which spans hold packets; whatever else is in a file, nothing is read in vain."""

from __future__ import annotations

import struct

import numpy as np
import pytest

pytest.importorskip("av", exc_type=ImportError)

from headrace._media.video.needed_bytes import find_packets
from headrace._storage.parts.sample_bytes import ByteFile, HeldBytes


def box(kind: bytes, content: bytes = b"", size: int | None = None) -> bytes:
    """A box with a size of its own, or a wrong one."""
    return struct.pack(">I4s", 8 + len(content) if size is None else size, kind) + content


def long_box(kind: bytes, content: bytes) -> bytes:
    """A box whose size takes 64 bits."""
    return struct.pack(">I4sQ", 1, kind, 16 + len(content)) + content


FIRST, TABLE, PACKETS = box(b"ftyp", b"isom"), box(b"moov", bytes(20)), box(b"mdat", bytes(100))


@pytest.mark.parametrize(
    ("data", "spans"),
    [
        (FIRST + PACKETS + TABLE, [(20, 100)]),
        (FIRST + TABLE + PACKETS, [(48, 100)]),
        (FIRST + TABLE + box(b"mdat", bytes(100), 0), [(48, 100)]),
        (FIRST + long_box(b"mdat", bytes(100)) + TABLE, [(28, 100)]),
        (PACKETS + TABLE + PACKETS, [(8, 100), (144, 100)]),
        (FIRST + TABLE + box(b"moof") + PACKETS, None),
        (FIRST + TABLE + TABLE + PACKETS, None),
        (FIRST + PACKETS, None),
        (FIRST + TABLE, None),
        (FIRST + TABLE + box(b"mdat", bytes(100), 109), None),
        (FIRST + TABLE + box(b"mdat", bytes(100), 7), None),
        (FIRST + TABLE + PACKETS + b"rest", None),
        (TABLE[4:] + PACKETS, None),
        (b"\x1a\x45\xdf\xa3" + bytes(60), None),
        (bytes(80), None),
        (FIRST * 100 + TABLE + PACKETS, None),
        (b"", None),
    ],
)
def test_boxes(data: bytes, spans: list[tuple[int, int]] | None) -> None:
    assert find_packets(HeldBytes(data)) == spans


def test_any_bytes() -> None:
    random = np.random.default_rng(0)
    whole = np.frombuffer(FIRST + TABLE + long_box(b"mdat", bytes(40)) + box(b"free", b"abc"), np.uint8)
    found = 0
    for _ in range(2000):
        data = whole.copy()
        data[random.integers(0, len(data), 3)] = random.choice([0, 1, 8, 16, 127, 255], 3)
        cut = data[: random.integers(len(data) - 20, len(data) + 1)].tobytes()
        spans = find_packets(HeldBytes(cut))
        found += spans is not None
        assert all(0 <= begin <= begin + count <= len(cut) for begin, count in spans or ())
    assert 0 < found < 2000


def test_blank_spans_are_zeros() -> None:
    data, blank = bytes(range(1, 101)), [(10, 20), (30, 5), (90, 10)]
    expected = np.frombuffer(data, np.uint8).copy()
    for begin, count in blank:
        expected[begin : begin + count] = 0
    for begin, count in ((0, 100), (0, 10), (5, 10), (12, 3), (29, 2), (34, 60), (95, 50), (100, 1)):
        file = ByteFile(HeldBytes(data), blank)
        assert file.seek(begin) == begin
        assert file.read(count) == expected[begin : begin + count].tobytes()
        assert file.tell() == min(begin + count, 100)
