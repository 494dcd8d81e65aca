"""Changes of a JPEG file that keep most of its structure, so that what follows the change is parsed, too."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from fuzz.jpegs.structure import COM, DHT, DQT, DRI, EOI, SOFS, SOI, SOS, Part

Change = Callable[[random.Random, list[Part]], list[Part]]

_EDGES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 100, 127, 128, 255)
_LENGTHS = (0, 1, 2, 3, 4, 7, 65535)


def mutated(draw: random.Random, parts: list[Part], others: list[list[Part]]) -> list[Part]:
    """Returns a file with one to four changes. `others`: files whose parts may be spliced in."""
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        parts = draw.choice(_CHANGES)(draw, parts) if draw.random() > 0.06 else _spliced(draw, parts, others)
    return parts


def _spliced(draw: random.Random, parts: list[Part], others: list[list[Part]]) -> list[Part]:
    """One part of another file, in place of one or beside it."""
    part, at = draw.choice(draw.choice(others)), draw.randrange(len(parts))
    return [*parts[:at], part, *parts[at + draw.randrange(2) :]]


def _one(draw: random.Random, parts: list[Part], *markers: int) -> int | None:
    found = [number for number, part in enumerate(parts) if part.marker in markers and part.payload]
    return draw.choice(found) if found else None


def _with(parts: list[Part], at: int, part: Part) -> list[Part]:
    return [*parts[:at], part, *parts[at + 1 :]]


def _byte(draw: random.Random, data: bytes, at: int) -> bytes:
    """One byte changed: to an edge, to any value, or by one bit."""
    value = draw.choice((draw.choice(_EDGES), draw.randrange(256), data[at] ^ (1 << draw.randrange(8))))
    return data[:at] + bytes((value,)) + data[at + 1 :]


def _delete(draw: random.Random, parts: list[Part]) -> list[Part]:
    at = draw.randrange(len(parts))
    return [*parts[:at], *parts[at + 1 :]] if len(parts) > 1 else parts


def _repeat(draw: random.Random, parts: list[Part]) -> list[Part]:
    at, to = draw.randrange(len(parts)), draw.randrange(len(parts) + 1)
    return [*parts[:to], parts[at], *parts[to:]]


def _swap(draw: random.Random, parts: list[Part]) -> list[Part]:
    a, b = draw.randrange(len(parts)), draw.randrange(len(parts))
    changed = list(parts)
    changed[a], changed[b] = changed[b], changed[a]
    return changed


def _in_payload(*markers: int) -> Change:
    """A byte of the payload of one of these markers."""

    def change(draw: random.Random, parts: list[Part]) -> list[Part]:
        at = _one(draw, parts, *markers)
        if at is None:
            return parts
        payload = parts[at].payload or b""
        return _with(parts, at, replace(parts[at], payload=_byte(draw, payload, draw.randrange(len(payload)))))

    return change


def _size(draw: random.Random, parts: list[Part]) -> list[Part]:
    """Another height or width. Not what takes Pillow seconds: a few rows or columns, or more than it accepts."""
    at = _one(draw, parts, *SOFS)
    if at is None or len(parts[at].payload or b"") < 6:
        return parts
    payload = parts[at].payload or b""
    numbers = [int.from_bytes(payload[k : k + 2], "big") for k in (1, 3)]
    if draw.random() < 0.05:
        numbers = [65500, 65500]
    else:
        which = draw.randrange(2)
        numbers[which] = max(0, min(400, numbers[which] + draw.choice((-17, -8, -1, 1, 2, 7, 8, 16, 33, -400))))
    size = b"".join(number.to_bytes(2, "big") for number in numbers)
    return _with(parts, at, replace(parts[at], payload=payload[:1] + size + payload[5:]))


def _kind_of_frame(draw: random.Random, parts: list[Part]) -> list[Part]:
    at = _one(draw, parts, *SOFS)
    kinds = (0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC9, 0xCA)
    return parts if at is None else _with(parts, at, replace(parts[at], marker=draw.choice(kinds)))


def _wrong_length(draw: random.Random, parts: list[Part]) -> list[Part]:
    at = draw.randrange(len(parts))
    payload = parts[at].payload
    if payload is None:
        return parts
    length = draw.choice((*_LENGTHS, len(payload) + 1, len(payload) + 3, len(payload)))
    return _with(parts, at, replace(parts[at], length=length))


def _shorter_payload(draw: random.Random, parts: list[Part]) -> list[Part]:
    at = draw.randrange(len(parts))
    payload = parts[at].payload
    return (
        parts if not payload else _with(parts, at, replace(parts[at], payload=payload[: draw.randrange(len(payload))]))
    )


def _in_codes(change: Callable[[random.Random, bytes], bytes]) -> Change:
    """A change of the data of one scan."""

    def changed(draw: random.Random, parts: list[Part]) -> list[Part]:
        at = _one(draw, parts, SOS)
        if at is None or not parts[at].codes:
            return parts
        return _with(parts, at, replace(parts[at], codes=change(draw, parts[at].codes)))

    return changed


def _flip(draw: random.Random, codes: bytes) -> bytes:
    return _byte(draw, codes, draw.randrange(len(codes)))


def _cut(draw: random.Random, codes: bytes) -> bytes:
    return codes[: draw.randrange(len(codes))]


def _remove(draw: random.Random, codes: bytes) -> bytes:
    at = draw.randrange(len(codes))
    return codes[:at] + codes[at + draw.choice((1, 2, 8, 64)) :]


def _double(draw: random.Random, codes: bytes) -> bytes:
    at = draw.randrange(len(codes))
    return codes[:at] + codes[at : at + draw.choice((1, 2, 8, 64))] + codes[at:]


def _insert(draw: random.Random, codes: bytes) -> bytes:
    at = draw.randrange(len(codes) + 1)
    what = (b"\xff\x00", b"\xff\xff", b"\xff\xd0", b"\xff\xd3", b"\xff\xd7", b"\x00", b"\xff", b"\xff\xd9", b"\xff\x01")
    return codes[:at] + draw.choice(what) + codes[at:]


def _restart_number(draw: random.Random, codes: bytes) -> bytes:
    found = [at for at in range(len(codes) - 1) if codes[at] == 0xFF and 0xD0 <= codes[at + 1] <= 0xD7]
    if not found:
        return codes
    at = draw.choice(found)
    other = b"" if draw.random() < 0.3 else bytes((0xFF, 0xD0 + draw.randrange(8)))
    return codes[:at] + other + codes[at + 2 :]


def _restart_interval(draw: random.Random, parts: list[Part]) -> list[Part]:
    """Another interval, or one where there was none."""
    interval = Part(DRI, draw.choice((0, 1, 2, 3, 4, 9, 65535)).to_bytes(2, "big"))
    at = _one(draw, parts, DRI)
    if at is None:
        return [*parts[: min(1, len(parts))], interval, *parts[1:]]
    return _with(parts, at, interval)


def _new_segment(draw: random.Random, parts: list[Part]) -> list[Part]:
    """A comment, or a segment that says how the colours or the orientation are to be understood."""
    made = draw.choice(
        (
            Part(COM, bytes(draw.randrange(256) for _ in range(draw.randrange(40)))),
            Part(0xEE, b"Adobe\x00\x64\x00\x00\x00\x00" + bytes((draw.choice((0, 1, 2, 3, 255)),))),
            Part(0xE0, b"JFIF\x00\x01\x02\x00\x00\x01\x00\x01\x00\x00"),
            Part(0xE1, b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00"),
            Part(0xE2, b"MPF\x00" + bytes(draw.randrange(256) for _ in range(20))),
            Part(0xDC, b"\x00\x10"),
            Part(EOI),
            Part(SOI),
        )
    )
    at = draw.randrange(len(parts) + 1)
    return [*parts[:at], made, *parts[at:]]


def _garbage(draw: random.Random, parts: list[Part]) -> list[Part]:
    """Bytes between two parts, or after the end."""
    at = draw.randrange(len(parts))
    some = bytes(draw.choice((0, 0xFF, draw.randrange(256))) for _ in range(draw.randrange(1, 9)))
    return _with(parts, at, replace(parts[at], codes=parts[at].codes + some))


_SCANS: tuple[Change, ...] = tuple(
    map(_in_codes, (_flip, _flip, _flip, _cut, _remove, _double, _insert, _insert, _restart_number))
)
_CHANGES: tuple[Change, ...] = (
    _delete,
    _repeat,
    _swap,
    *(_in_payload(marker) for marker in (DHT, DHT, DQT, DQT, SOS, SOS, 0xE0, 0xE1)),
    _in_payload(*SOFS),
    _in_payload(*SOFS),
    _size,
    _size,
    _kind_of_frame,
    _wrong_length,
    _shorter_payload,
    _restart_interval,
    _new_segment,
    _garbage,
    *_SCANS,
)
