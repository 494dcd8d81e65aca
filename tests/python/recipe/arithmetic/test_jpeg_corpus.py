"""The native JPEG path against Pillow: Pillow accepts each file that it calls plain, and each box equals Pillow's."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headrace._base.native import core
from support import data_folder

pytestmark = pytest.mark.slow

Box = tuple[int, int, int, int]
BIGGEST = 50_000_000  # pixels; sources/test_bombs.py covers decompression bombs
BOXES = 12  # random boxes per file


def by_pillow(data: bytes) -> np.ndarray | None:
    """Height x width x 3 bytes, or None where Pillow refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data)) as image:
                return np.asarray(image.convert("RGB"))
        except Exception:  # Pillow raises OSError, SyntaxError, ValueError, struct.error and more
            return None


def natively(data: bytes, box: Box) -> np.ndarray:
    x, y, width, height = box
    pixels = np.frombuffer(core.decode_crop(data, x, y, width, height), np.uint8)
    return pixels.reshape(height, width, 4)[..., :3]


def boxes(width: int, height: int, rng: random.Random) -> Iterator[Box]:
    """The whole image, corners and edges, then boxes of every size; small ones cut inside one MCU."""
    yield 0, 0, width, height
    yield 0, 0, 1, 1
    yield width - 1, height - 1, 1, 1
    yield width - 1, 0, 1, height
    yield 0, height - 1, width, 1
    for i in range(BOXES):
        x, y = rng.randrange(width), rng.randrange(height)
        most = (4, 4) if i % 3 == 0 else (width, height)
        yield x, y, rng.randint(1, min(most[0], width - x)), rng.randint(1, min(most[1], height - y))


def differences(data: bytes, name: str, compared: set[str]) -> Iterator[str]:
    """The differences of the native path from Pillow for this file; adds its name where boxes of it were compared."""
    header = core.jpeg_header(data)
    if header["not_plain"] is not None or header["width"] * header["height"] > BIGGEST:
        return
    expected = by_pillow(data)
    if expected is None:
        yield f"{name}: plain, but Pillow refuses it"
        return
    if expected.shape[:2] != (header["height"], header["width"]):
        yield f"{name}: {header['width']}x{header['height']}, but {expected.shape[1]}x{expected.shape[0]} for Pillow"
        return
    for x, y, width, height in boxes(header["width"], header["height"], random.Random(name)):
        try:
            ours = natively(data, (x, y, width, height))
        except core.NeedsPillow:
            continue  # damaged: Pillow decodes it
        compared.add(name)
        if not np.array_equal(ours, expected[y : y + height, x : x + width]):
            yield f"{name}: other pixels in box {(x, y, width, height)}"


def check(folder: Path, at_least: float) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".tsv")
    blobs = {path.name: path.read_bytes() for path in files}
    compared: set[str] = set()
    assert [line for name, data in blobs.items() for line in differences(data, name, compared)] == []
    assert len(compared) >= at_least * len(blobs)


@pytest.mark.pixels
def test_imagenet_files(imagenet_dev: Path) -> None:
    check(imagenet_dev, 1.0)


@pytest.mark.pixels
def test_odd_and_broken_files(hard_dev: Path) -> None:
    check(hard_dev, 0.3)


@pytest.mark.pixels
def test_camera_photographs() -> None:
    check(data_folder("large"), 1.0)


@pytest.mark.pixels
def test_shipped_photographs(photographs: list[Path]) -> None:
    compared: set[str] = set()
    assert [line for path in photographs for line in differences(path.read_bytes(), path.name, compared)] == []
    assert compared == {path.name for path in photographs}


@pytest.mark.pixels
@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("options", ["", "progressive", "restart_marker_blocks", "optimize"])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
def test_every_column_and_row_can_be_cut_at(mode: str, options: str, subsampling: str) -> None:
    image = Image.effect_noise((41, 37), 90)
    if mode == "RGB":
        image = Image.merge("RGB", [Image.effect_noise((41, 37), 90) for _ in range(3)])
    file = io.BytesIO()
    image.save(file, "JPEG", subsampling=subsampling, quality=92, **({options: 1} if options else {}))
    data = file.getvalue()
    expected = by_pillow(data)
    assert expected is not None
    for x in range(41):
        for width in {1, min(2, 41 - x), (42 - x) // 2, 41 - x}:
            assert np.array_equal(natively(data, (x, 5, width, 9)), expected[5:14, x : x + width])
    for y in range(37):
        for height in {1, min(2, 37 - y), (38 - y) // 2, 37 - y}:
            assert np.array_equal(natively(data, (3, y, 7, height)), expected[y : y + height, 3:10])


def test_header_fields() -> None:
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x112] = 6
    Image.new("RGB", (40, 30)).save(file, "JPEG", subsampling="4:2:0", exif=exif)
    header = core.jpeg_header(file.getvalue())
    assert (header["width"], header["height"], header["not_plain"]) == (40, 30, None)
    assert header["components"] == [(1, 2, 2), (2, 1, 1), (3, 1, 1)]
    assert (header["progressive"], header["scans"], header["exif_orientation"]) == (False, 1, 6)
    assert core.jpeg_header(b"")["not_plain"] == "not a JPEG"
    file = io.BytesIO()
    Image.new("CMYK", (8, 8)).save(file, "JPEG")
    assert core.jpeg_header(file.getvalue())["not_plain"] == "CMYK or YCCK"


def test_wrong_boxes_and_unclean_files_are_refused() -> None:
    file = io.BytesIO()
    Image.effect_noise((40, 30), 50).save(file, "JPEG")
    data = file.getvalue()
    for box in [(-1, 0, 4, 4), (0, 0, 41, 4), (39, 0, 2, 1), (0, 0, 0, 1), (0, 29, 1, 2), (0, 0, 2**31 - 1, 1)]:
        with pytest.raises(ValueError, match="inside the image"):
            core.decode_crop(data, *box)
    with pytest.raises(core.NeedsPillow, match="EOI"):
        core.decode_crop(data[:-2], 0, 0, 40, 30)
    with pytest.raises(core.NeedsPillow, match="EOI"):
        core.JpegFile(data[:-2])


def test_whole_images_in_memory_of_the_caller() -> None:
    file = io.BytesIO()
    Image.effect_noise((40, 30), 50).save(file, "JPEG")
    data, out = file.getvalue(), np.zeros((30, 40, 4), np.uint8)
    core.decode_whole(core.JpegFile(data), out)
    assert out.tobytes() == core.decode_crop(data, 0, 0, 40, 30)
    read_only = np.zeros((30, 40, 4), np.uint8)
    read_only.flags.writeable = False
    shapes = [(40, 30, 4), (30, 40, 3), (30, 39, 4), (31, 40, 4), (30, 160)]
    for wrong in (*(np.zeros(shape, np.uint8) for shape in shapes), np.zeros((60, 40, 4), np.uint8)[::2]):
        with pytest.raises(ValueError, match="contiguous, of shape"):
            core.decode_whole(core.JpegFile(data), wrong)
    with pytest.raises(ValueError, match="not writeable"):
        core.decode_whole(core.JpegFile(data), read_only)
    with pytest.raises(TypeError):
        core.decode_whole(core.JpegFile(data), np.zeros((30, 40, 4), np.int8))
    assert not read_only.any()


HASHES = """
import hashlib, pathlib, random, sys
from headrace._base.native import core
draw = random.Random(1).randrange
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jpg")):
    data = path.read_bytes()
    header = core.jpeg_header(data)
    width, height = header["width"], header["height"]
    for _ in range(20):
        x, y = draw(width), draw(height)
        pixels = core.decode_crop(data, x, y, 1 + draw(width - x), 1 + draw(height - y))
        print(hashlib.sha256(pixels).hexdigest())
"""


@pytest.mark.parametrize(
    "setting",
    [{"HEADRACE_HUFFMAN": name} for name in ("library", "lanes")]
    + [{"HEADRACE_ISA": name} for name in ("scalar", "avx2")],
    ids=str,
)
def test_loops_agree(setting: dict[str, str], photographs: list[Path]) -> None:
    if setting.get("HEADRACE_ISA") == "avx2" and core.instruction_set() == "scalar":
        pytest.skip("this processor has no AVX2")

    def hashes(extra: dict[str, str]) -> str:
        command = [sys.executable, "-c", HASHES, str(photographs[0].parent)]
        return subprocess.run(command, env=os.environ | extra, check=True, capture_output=True, text=True).stdout

    assert hashes(setting) == hashes({})
    assert len(hashes({}).split()) == 20 * len(photographs)
