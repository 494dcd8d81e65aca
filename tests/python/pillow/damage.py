"""Damaged JPEG files: small ones of each coding, cut, changed, with markers removed, inserted and moved."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

_SOI, _EOI, _SOS, _DHT, _DQT, _DRI = 0xD8, 0xD9, 0xDA, 0xC4, 0xDB, 0xDD
_MARKERS = (0x01, 0xC0, 0xC2, _DHT, 0xC9, 0xD0, 0xD3, 0xD7, _SOI, _EOI, _SOS, _DQT, 0xDC, _DRI, 0xE0, 0xEE, 0xFE, 0xFF)


def sound_files(photographs: list[Path]) -> list[bytes]:
    """Baseline and progressive files, RGB and gray, each sampling, with restart markers and with a long segment."""
    made = []
    kinds: list[dict[str, Any]] = [
        {},
        {"subsampling": 0},
        {"subsampling": 1, "optimize": True},
        {"restart_marker_blocks": 3},
        {"restart_marker_rows": 1, "subsampling": 0},
        {"progressive": True},
        {"progressive": True, "subsampling": 0},
        {"progressive": True, "restart_marker_rows": 1},
        {"comment": bytes(60_000)},
        {"gray": True},
        {"gray": True, "progressive": True},
        {"gray": True, "restart_marker_blocks": 2},
        {"large": True, "subsampling": 0},  # Pillow feeds it to libjpeg in several parts
    ]
    for number, options in enumerate(kinds):
        with Image.open(photographs[number % len(photographs)]) as photograph:
            large = options.pop("large", False)
            image = photograph.convert("L" if options.pop("gray", False) else "RGB")
            image = image if large else image.resize((77 + number, 50 + 3 * number))
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=100 if large else 60 + number, **options)
        made.append(stream.getvalue())
    return made


def segments(data: bytes) -> list[tuple[int, int]]:
    """The marker and the begin of each segment of a sound file, those between scans and the EOI included."""
    found, at = [], 2
    while at < len(data) - 1:
        marker = data[at + 1]
        if data[at] != 0xFF or marker == 0 or 0xD0 <= marker < _EOI:
            at += 1  # entropy-coded data
            continue
        found.append((marker, at))
        at += 2 if marker == _EOI else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return found


def _end(data: bytes, begin: int) -> int:
    return begin + 2 + (0 if data[begin + 1] == _EOI else int.from_bytes(data[begin + 2 : begin + 4], "big"))


def _within(data: bytes, draw: random.Random) -> int:
    """A place in the entropy-coded data of any scan, or where one of them begins or ends."""
    parts = segments(data)
    scans = [number for number, (marker, _) in enumerate(parts) if marker == _SOS]
    number = draw.choice(scans)
    begin, end = _end(data, parts[number][1]), parts[number + 1][1] if number + 1 < len(parts) else len(data)
    return draw.choice([begin, end - 1, end, draw.randint(begin, end), draw.randint(begin, end)])


def _place(data: bytes, draw: random.Random) -> int:
    """A place anywhere, often one of interest."""
    _, begin = draw.choice(segments(data))
    return draw.choice([begin, begin + 1, begin + 2, begin + 3, draw.randint(2, len(data)), _within(data, draw)])


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: _place(data, draw)]


def _without_eoi(data: bytes, draw: random.Random) -> bytes:
    return data[: -draw.randint(1, 3)] + draw.choice([b"", b"", b"\0" * 3, b"\xff", b"\xff\xff\xff\xd9"])


def _changed_bytes(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 20])):
        at = min(_within(data, draw), len(data) - 1)
        changed[at] = draw.choice([0, 0xFF, draw.randrange(256), draw.randrange(256)])
    return bytes(changed)


def _changed_run(data: bytes, draw: random.Random) -> bytes:
    at, length = _within(data, draw), draw.randint(2, 300)
    return data[:at] + draw.choice([bytes(length), draw.randbytes(length)]) + data[at + length :]


def _removed_bytes(data: bytes, draw: random.Random) -> bytes:
    at = _within(data, draw)
    return data[:at] + data[at + draw.choice([1, 2, 3, 50, 1000]) :]


def _removed_segment(data: bytes, draw: random.Random) -> bytes:
    _, begin = draw.choice(segments(data))
    return data[:begin] + data[_end(data, begin) :]


def _inserted_marker(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + bytes([0xFF] * draw.choice([1, 1, 1, 2]) + [draw.choice(_MARKERS)]) + data[at:]


def _changed_restart(data: bytes, draw: random.Random) -> bytes:
    places = [at for at in range(len(data) - 1) if data[at] == 0xFF and 0xD0 <= data[at + 1] < 0xD8]
    if not places:
        return _inserted_marker(data, draw)
    at = draw.choice(places)
    new = draw.choice([b"", b"\xff", b"\xff\xff" + data[at + 1 : at + 2], bytes([0xFF, 0xD0 + draw.randrange(8)])])
    return data[:at] + new + data[at + 2 :]


def _moved_segment(data: bytes, draw: random.Random) -> bytes:
    """Puts a copy of a segment, sound or changed, before another one: a DHT or DQT between scans, too."""
    _, begin = draw.choice(segments(data))
    segment = bytearray(data[begin : _end(data, begin)])
    if draw.random() < 0.6 and len(segment) > 4:
        segment[draw.randrange(2, len(segment))] = draw.randrange(256)
    _, at = draw.choice(segments(data))
    return data[:at] + bytes(segment) + data[at:]


def _changed_segment(data: bytes, draw: random.Random) -> bytes:
    _, begin = draw.choice(segments(data))
    changed = bytearray(data)
    changed[min(draw.randrange(begin, _end(data, begin)), len(data) - 1)] = draw.randrange(256)
    return bytes(changed)


def _more_at_the_end(data: bytes, draw: random.Random) -> bytes:
    return data + draw.choice([b"\xff\xd9", b"\xff\xd8\xff", draw.randbytes(70_000), data, bytes(5)])


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _cut,
    _without_eoi,
    _changed_bytes,
    _changed_run,
    _removed_bytes,
    _removed_segment,
    _inserted_marker,
    _changed_restart,
    _moved_segment,
    _changed_segment,
    _more_at_the_end,
)


def damaged(data: bytes, draw: random.Random) -> bytes:
    """A sound file with one damage, or with several."""
    made = draw.choice(DAMAGES)(data, draw)
    while draw.random() < 0.15:
        try:
            made = draw.choice(DAMAGES)(made, draw)
        except (IndexError, ValueError):  # nothing left to damage
            break
    return made
