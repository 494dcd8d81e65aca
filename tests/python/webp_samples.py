"""WebP files of every kind: still images by Pillow, the chunks around them written here."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageCms

_SIZES = ((1, 1), (2, 1), (17, 13), (64, 33))


def picture(mode: str, width: int, height: int, seed: int = 0) -> Image.Image:
    """Smooth colours with some noise; of RGBA, some pixels transparent and some half."""
    draw = np.random.default_rng(seed)
    values = np.linspace(0, 255, width * height * len(mode)).reshape(height, width, -1)
    values = (values + draw.integers(0, 40, values.shape)).clip(0, 255).astype(np.uint8)
    if mode == "RGBA":
        values[..., 3] = draw.choice([0, 1, 128, 254, 255], (height, width))
    return Image.fromarray(values)


def webp(mode: str = "RGB", size: tuple[int, int] = (17, 13), **options: Any) -> bytes:
    out = io.BytesIO()
    picture(mode, *size).save(out, "WEBP", **options)
    return out.getvalue()


def animation(frames: int, **options: Any) -> bytes:
    out = io.BytesIO()
    first, *others = [picture("RGB", 17, 13, seed) for seed in range(frames)]
    first.save(out, "WEBP", save_all=True, append_images=others, duration=40, **options)
    return out.getvalue()


def one_frame(mode: str, canvas: tuple[int, int], at: tuple[int, int], **options: Any) -> bytes:
    """An animation of one frame of 17 x 13 pixels somewhere on its canvas."""
    blend_and_background = 2 if mode == "RGB" else 0
    head = b"".join(_three(value) for value in (at[0] // 2, at[1] // 2, 16, 12, 70)) + bytes([blend_and_background])
    image = [one for one in chunks(webp(mode, **options)) if one[0] in (b"ALPH", b"VP8 ", b"VP8L")]
    frame = b"".join(chunk(*one) for one in image)
    kind = bytes([0x02 | (0x10 if mode == "RGBA" else 0), 0, 0, 0])
    extended = kind + _three(canvas[0] - 1) + _three(canvas[1] - 1)
    return riff(
        chunk(b"VP8X", extended), chunk(b"ANIM", struct.pack("<IH", 0x80FF4020, 3)), chunk(b"ANMF", head + frame)
    )


def _three(value: int) -> bytes:
    return value.to_bytes(3, "little")


def chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def riff(*parts: bytes) -> bytes:
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks of a sound file: name, data."""
    at = 12
    while at < len(data):
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        yield data[at : at + 4], data[at + 8 : at + 8 + length]
        at += 8 + length + length % 2


def still_webps() -> Iterator[bytes]:
    """Sound files of one frame."""
    exif = Image.Exif()
    exif[274] = 6
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for mode in ("RGB", "RGBA"):
        for size in _SIZES:
            yield webp(mode, size, quality=80)
            yield webp(mode, size, lossless=True)
        for options in (
            {"quality": 0},
            {"quality": 100},
            {"lossless": True, "exact": True},
            {"quality": 60, "method": 6},
        ):
            yield webp(mode, **options)
        yield webp(mode, exif=exif.tobytes())
        yield webp(mode, icc_profile=profile, xmp=b"<x/>", lossless=True)
        yield one_frame(mode, (17, 13), (0, 0))
        yield one_frame(mode, (40, 30), (6, 8), lossless=True)


def odd_webps() -> Iterator[bytes]:
    """Animations, files that are cut off, that have too much, or whose chunks contradict each other."""
    yield animation(2)
    yield animation(3, lossless=True)
    for mode in ("RGB", "RGBA"):
        for options in ({}, {"lossless": True}):
            data = webp(mode, (64, 33), **options)
            for kept in (11, 16, 29, 30, 31, len(data) // 2, len(data) - 1):
                yield data[:kept]
            yield data + b"more"
            yield data[:4] + struct.pack("<I", len(data) + 100) + data[8:]
            yield data[:4] + struct.pack("<I", len(data) // 2) + data[8:]
            parts = [chunk(*one) for one in chunks(data)]
            yield riff(chunk(b"VP8X", bytes([0x10, 0, 0, 0]) + _three(9) + _three(9)), *parts[-1:])
            yield riff(*parts, *parts)
            yield riff(chunk(b"ODD ", b"abc"), *parts)
