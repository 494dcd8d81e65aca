"""Pillow's warnings about a JPEG are issued as in torch, or raised where warnings are errors."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages, ImageFiles
from headrace import transforms as T
from headrace._base.native import core

TRANSFORM = T.Compose([T.Resize((8, 8)), T.ToTensor()])


def jpeg(exif: bytes = b"", unit: int | None = None) -> bytes:
    """A JPEG with an EXIF segment, and a JFIF segment with a resolution in this unit, or none."""
    out = BytesIO()
    Image.new("RGB", (32, 32), (9, 99, 200)).save(out, "JPEG")
    data = out.getvalue()
    length = struct.unpack(">H", data[4:6])[0]
    assert data[2:4] == b"\xff\xe0"
    head = b"" if unit is None else data[2:13] + bytes([unit]) + data[14 : 4 + length]
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif if exif else b""
    return data[:2] + head + segment + data[4 + length :]


def directory(*entries: tuple[int, int, int, int], tail: bytes = b"\0\0\0\0") -> bytes:
    """An EXIF segment of entries (tag, type, count, value or its offset)."""
    packed = b"".join(struct.pack("<HHII", *one) for one in entries)
    return b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", len(entries)) + packed + tail


RESOLUTION = ((0x11A, 5, 1, 8), (0x128, 3, 1, 2))  # the rational's offset points at the entries
ORIENTATION = (0x112, 3, 1, 6)
SEGMENTS = {
    "sound": directory(ORIENTATION, *RESOLUTION),
    "no resolution": directory(ORIENTATION),
    "a text outside": directory((0x10E, 2, 500, 9999), ORIENTATION),
    "a text half outside": directory((0x10E, 2, 40, 10)),
    "all texts together too long": directory((0x10E, 2, 30, 8), (0x10F, 2, 30, 8)),
    "the next offset cut": directory(ORIENTATION, tail=b"\0\0"),
    "no next offset": directory(ORIENTATION, tail=b""),
    "an entry cut": directory(ORIENTATION, ORIENTATION, tail=b"")[:-3],
    "of an unknown type": directory((0x10E, 77, 500, 9999), ORIENTATION),
    "of type IFD, outside": directory((0x10E, 13, 2, 9999), ORIENTATION),
    "the same twice": directory((0x10E, 2, 5, 9), (0x10E, 2, 500, 9999)),
    "a resolution of two": directory((0x11A, 5, 2, 8), (0x128, 3, 1, 2)),
    "a unit of two": directory((0x128, 3, 2, 2), (0x11A, 5, 1, 8)),
    "no directory": b"Exif\0\0II*\0\xff\xff\0\0",
    "no TIFF": b"Exif\0\0what is this",
}


def outcome(kind: Any, data: Any, action: Any) -> tuple[Any, list[tuple[str, str]]]:
    """(the pixels or the error's type, the warnings)."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        try:
            made: Any = next(iter(kind(data)))
        except Exception as error:
            made = type(error.__cause__ or error).__name__ if kind is DataLoader else type(error).__name__
    return made, [(one.category.__name__, str(one.message)) for one in told]


@pytest.mark.parametrize("unit", [None, 0, 1, 2], ids=["no JFIF", "no unit", "dpi", "dpcm"])
@pytest.mark.parametrize("name", SEGMENTS)
@pytest.mark.parametrize("action", ["always", "error"])
def test_exif(name: str, unit: int | None, action: str) -> None:
    data = EncodedImages([jpeg(SEGMENTS[name], unit)], None, TRANSFORM)
    theirs, ours = outcome(TorchDataLoader, data, action), outcome(DataLoader, data, action)
    assert ours[1] == theirs[1]
    if isinstance(theirs[0], torch.Tensor):
        assert torch.equal(ours[0], theirs[0])
    else:
        assert ours[0] == theirs[0]


def test_what_is_sound_stays_native() -> None:
    for name in ("sound", "no resolution", "of an unknown type"):
        for unit in (None, 0, 1, 2):
            assert core.jpeg_header(jpeg(SEGMENTS[name], unit))["not_plain"] is None, name
    for unit in (1, 2):  # Pillow has the resolution from JFIF, and does not read the EXIF segment
        assert core.jpeg_header(jpeg(SEGMENTS["a text outside"], unit))["not_plain"] is None


def test_real_files_stay_native(imagenet_dev: Path) -> None:
    """At most one real file in 200 has an EXIF segment that Pillow warns of."""
    verdicts = [core.jpeg_header(path.read_bytes())["not_plain"] for path in imagenet_dev.glob("*/*")]
    assert verdicts.count("an EXIF segment that Pillow warns about") <= len(verdicts) / 200


@pytest.mark.parametrize("action", ["always", "error"])
@pytest.mark.parametrize("step", [None, lambda image: image], ids=["native", "a Python step"])
def test_more_pixels_than_pillow_likes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, action: str, step: Callable[..., Any] | None
) -> None:
    """Up to twice Pillow's limit gives Pillow's own warning; more is an error with any warning filter."""
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(unit=1))
    data = ImageFiles([path], None, T.Compose([*([step] if step else []), *TRANSFORM.transforms]))
    for limit in (2000, 1024, 1023, 600, 512, 511):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        theirs, ours = outcome(TorchDataLoader, data, action), outcome(DataLoader, data, action)
        assert ours[1] == theirs[1]
        assert torch.is_tensor(ours[0]) == torch.is_tensor(theirs[0])
        assert torch.is_tensor(ours[0]) or ours[0] == theirs[0]


def test_what_is_native_never_warns() -> None:
    """Segments with bytes changed or cut at random: what the header parser accepts, Pillow opens without a warning."""
    rng = np.random.default_rng(1)
    mpf = b"MPF\0II*\0\x08\0\0\0" + struct.pack("<H", 3) + struct.pack("<HHI4s", 0xB000, 7, 4, b"0100")
    mpf += struct.pack("<HHII", 0xB001, 4, 1, 2) + struct.pack("<HHII", 0xB002, 7, 32, 50) + b"\0\0\0\0"
    mpf += b"\0\0\x03\0" + bytes(28)
    bodies = [(0xE1, body) for body in SEGMENTS.values()] + [(0xE2, mpf)] * 8
    base = jpeg()
    native = warned = 0
    for _ in range(4000):
        marker, original = bodies[rng.integers(len(bodies))]
        body = bytearray(original)
        for _ in range(rng.integers(3)):
            body[rng.integers(4, len(body))] = rng.choice([0, 1, 2, 4, 5, 8, 10, 40, 255, int(rng.integers(256))])
        if rng.random() < 0.2:
            del body[rng.integers(8, len(body)) :]
        data = base[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body + base[2:]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                Image.open(BytesIO(data)).close()
                opened = True
            except Exception:
                opened = False
        plain = core.jpeg_header(data)["not_plain"] is None
        assert not plain or (opened and not told), (bytes(body), [str(one.message) for one in told])
        native += plain
        warned += bool(told)
    assert native > 500 and warned > 500
