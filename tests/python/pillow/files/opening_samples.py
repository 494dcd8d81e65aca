"""JPEG files with each segment that Pillow knows, and damaged ones."""

from __future__ import annotations

import io
import itertools
import random
from functools import cache
from typing import Any

from PIL import Image

from headrace.pillow.files import jpeg_openings
from support import pictures


def segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + (len(body) + 2).to_bytes(2, "big") + body


@cache
def made_files() -> tuple[bytes, ...]:
    """Files with each segment that Pillow knows, sound and cut, and with some that it does not know."""
    (plain,) = pictures(1)
    image = Image.open(io.BytesIO(plain))
    image.load()
    jfif = b"JFIF\0\1\2%c\0\x48\1\x2c\0\0"
    bodies: list[tuple[int, bytes]] = [
        *((0xE0, jfif % unit) for unit in range(5)),
        *((0xE0, (jfif % 1)[:length]) for length in (0, 3, 4, 5, 6, 7, 8, 11, 12, 13)),
        *((0xEE, b"Adobe\0\x64\1\2\3\4\5\6"[:length]) for length in range(14)),
        *((0xE2, b"ICC_PROFILE\0" + of + b"profile") for of in (b"\1\1", b"\1\2", b"\2\2", b"\0\0", b"\2\1")),
        *((0xE2, (b"ICC_PROFILE\0\1\1")[:length]) for length in (11, 12, 13, 14)),
        *((0xE2, body) for body in (b"FPXR\0", b"FPXR", b"MPF\0", b"MPF", b"MPF\0II*\0\x08\0\0\0")),
        *((0xE1, body) for body in (b"Exif\0\0II*\0\x08\0\0\0\0\0", b"Exif\0\0", b"Exif\0", b"")),
        *((0xE1, body) for body in (b"http://ns.adobe.com/xap/1.0/\0<x/>", b"http://ns.adobe.com/xap/1.0/")),
        *((0xED, body) for body in (b"Photoshop 3.0\0", b"Photoshop 3.0\0" + b"8BIM\3\xed\0\0\0\0\0\x10" + bytes(16))),
        *((0xFE, body) for body in (b"", b"a comment", bytes(range(256)))),
        *((marker, b"others") for marker in range(0xE0, 0xF0)),
        *((marker, b"\0\4\1\2\3") for marker in (0xC8, 0xCC, 0xDC, 0xDD, 0xDE, 0xDF, 0xF0, 0x01, 0xD0)),
        (0xDB, bytes(65)),
        (0xDB, bytes(130)),
        (0xDB, b"\x13" + bytes(128)),
        (0xDB, bytes(64)),
        (0xC4, bytes(17)),
        (0xC0, b"\x08\0\x10\0\x20\1\1\x11\0"),
    ]
    ways: list[dict[str, Any]] = [
        *({"dpi": dpi} for dpi in ((72, 72), (300, 150))),
        *({"progressive": progressive, "comment": b"said"} for progressive in (False, True)),
        {"icc_profile": b"one piece"},
        {"icc_profile": bytes(70_000)},  # in two
        {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"},
        {"restart_marker_blocks": 2, "qtables": [list(range(1, 65))] * 2},
    ]
    found = [plain[:2] + segment(*one) + plain[2:] for one in bodies]
    found += [plain[:2] + segment(*one) + segment(*other) + plain[2:] for one, other in itertools.pairwise(bodies)]
    found += [plain[:2] + b"\xff" * count + plain[2:] for count in (1, 2, 3)]
    found += [plain[:2] + junk + plain[2:] for junk in (b"\0", b"\xff\0", b"junk", segment(0xE5, b"") + b"\0")]
    for options in ways:
        for mode in ("RGB", "L", "CMYK"):
            stream = io.BytesIO()
            image.convert(mode).save(stream, "JPEG", **options)
            found.append(stream.getvalue())
    stream = io.BytesIO()
    image.save(stream, "MPO", save_all=True, append_images=[image.convert("L")])
    found.append(stream.getvalue())
    return (*found, b"", plain[:2], plain[:3], plain[:100], b"not a JPEG", *pictures())


def changed(draw: random.Random, files: list[bytes]) -> bytes:
    """The begin of a file after some changes, most of them in its first segments."""
    data = bytearray(draw.choice(files)[: draw.choice((300, 1500, 4000, 4000))])
    usual = (0, 1, 2, 3, 4, 8, 0xFF, 0xD8, 0xDA, 0xDB, 0xDD, 0xC0, 0xC2, 0xC4, 0xE0, 0xE1, 0xE2, 0xEE, 0xFE)
    for _ in range(draw.choice((1, 1, 2, 5))):
        if len(data) < 4:
            break
        at = draw.randrange(min(len(data), draw.choice((40, 700))))
        kind = draw.randrange(4)
        if kind == 0:
            data[at] = draw.randrange(256)
        elif kind == 1:
            data[at] = draw.choice(usual)
        elif kind == 2:
            del data[at : at + draw.randrange(1, 20)]
        else:
            data[at:at] = draw.choice(files)[draw.randrange(20) :][: draw.randrange(1, 40)]
    return bytes(data)


def unopened(data: bytes, before: bytes = b"") -> Any:
    """An image of Pillow's class whose file has not been read, after some bytes of it."""
    image = jpeg_openings._unopened(before + data)
    image.fp.seek(len(before))
    return image
