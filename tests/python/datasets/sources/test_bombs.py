"""Headers that claim huge images are refused before memory is allocated; Pillow's limits and warnings apply."""

from __future__ import annotations

import math
import struct
import warnings
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from headrace import DataLoader, EncodedImages, SampleError
from support import assert_same, output_of, pictures, train

pytestmark = pytest.mark.slow

EDGE = 60_000


def jpeg_bomb(**options: bool) -> bytes:
    """A small JPEG whose frame header says 60000 x 60000."""
    out = BytesIO()
    Image.new("RGB", (16, 16), (200, 30, 90)).save(out, "JPEG", **options)
    data = bytearray(out.getvalue())
    frame = data.index(b"\xff\xc2" if options.get("progressive") else b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", EDGE, EDGE)
    return bytes(data)


def png_bomb() -> bytes:
    """A small PNG whose header says 60000 x 60000, with the right checksum."""
    out = BytesIO()
    Image.new("RGB", (16, 16)).save(out, "PNG")
    data = bytearray(out.getvalue())
    data[16:24] = struct.pack(">II", EDGE, EDGE)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


BOMBS = {"baseline": jpeg_bomb(), "progressive": jpeg_bomb(progressive=True), "png": png_bomb()}


def test_header_bombs_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    """Runs in a separate process, to measure the peak. A row of the claimed image is 180 kB, the whole image 10 GB."""
    for kind, data in BOMBS.items():
        (tmp_path / kind).write_bytes(data)
    out = output_of(f"""
import re
from support import *
from PIL import Image
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e3
def first(data, workers):
    try:
        next(iter(headrace.DataLoader(headrace.EncodedImages([data] * 4, None, train(64)), 4, num_workers=workers)))
    except Exception as error:
        return error
for workers in (0, 2):
    assert first(pictures(1)[0], workers) is None
    for kind in {list(BOMBS)}:
        bomb = (Path({str(tmp_path)!r}) / kind).read_bytes()
        before = peak()
        error = first(bomb, workers)
        assert isinstance(error, Image.DecompressionBombError), error
        assert isinstance(error, headrace.SampleError) and error.index == 0, error
        print(peak() - before)
""")
    assert len(out.split()) == 6 and max(map(float, out.split())) < 20


LIMIT = 7000
JPEGS = [data for data in pictures(24) if data.startswith(b"\xff\xd8")]
PIXELS = [math.prod(Image.open(BytesIO(data)).size) for data in JPEGS]
SMALL = [data for data, pixels in zip(JPEGS, PIXELS, strict=True) if pixels <= LIMIT]
LARGE = [data for data, pixels in zip(JPEGS, PIXELS, strict=True) if LIMIT < pixels <= 2 * LIMIT]


@pytest.fixture
def low_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers Pillow's limit so that some pictures exceed it."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", LIMIT)


@pytest.mark.parametrize("workers", [0, 1])
def test_pillows_warning_comes_and_the_batch_too(low_limit: None, workers: int) -> None:
    loader = DataLoader(EncodedImages(LARGE, None, train(32)), 4, num_workers=workers, seed=1)
    with pytest.warns(Image.DecompressionBombWarning, match="exceeds limit of 7000 pixels"):
        expected = list(loader.reference())
    with pytest.warns(Image.DecompressionBombWarning, match="exceeds limit of 7000 pixels"):
        made = list(loader)
    assert_same(made, expected)


@pytest.mark.parametrize("workers", [0, 1])
def test_where_warnings_are_errors_it_is_the_samples_error(low_limit: None, workers: int) -> None:
    """As under ``python -W error``, where torch's own loader fails in the same way."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Image.DecompressionBombWarning, match=r"decode: sample 0 .*exceeds limit of 7000") as raised:
            next(iter(DataLoader(EncodedImages(LARGE[:1], None, train(32)), num_workers=workers)))
    assert isinstance(raised.value, SampleError)


def test_at_the_limit_there_is_no_warning(low_limit: None) -> None:
    assert SMALL and LARGE
    assert_same(loader := DataLoader(EncodedImages(SMALL, None, train(32)), 4, seed=1), list(loader.reference()))


def test_above_twice_the_limit_pillow_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pictures(1)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(Image.DecompressionBombError, match=r"sample 0 .*exceeds limit of 200 pixels"):
        next(iter(DataLoader(EncodedImages(data, None, train(32)))))


def test_without_a_limit_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert_same(loader := DataLoader(EncodedImages(pictures(4), None, train(32)), 4, seed=1), list(loader.reference()))


@pytest.mark.parametrize("persistent", [False, True])
def test_the_limit_is_the_one_that_torchs_workers_would_have(monkeypatch: pytest.MonkeyPatch, persistent: bool) -> None:
    """New workers take over the limit of the moment; persistent ones keep the one that they began with."""
    loader = DataLoader(
        EncodedImages(pictures(1), None, train(32)), num_workers=1, persistent_workers=persistent, seed=1
    )
    next(iter(loader))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    if persistent:
        next(iter(loader))
    else:
        with pytest.raises(Image.DecompressionBombError):
            next(iter(loader))
    loader.close()


def test_load_truncated_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow's own switch counts too: then a truncated file is no error."""
    files = [pictures(1)[0][:900]]
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)
    for workers in (0, 1):
        loader = DataLoader(EncodedImages(files, None, train(32)), num_workers=workers, seed=1)
        assert_same(loader, list(loader.reference()))
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", False)
    with pytest.raises(OSError, match="truncated"):
        next(iter(loader))
