"""Progressive JPEGs, whole, damaged and cut short: Pillow's pixels, or left to Pillow."""

from __future__ import annotations

import io
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headrace import DataLoader, EncodedImages
from headrace._base.native import core
from support import assert_same, train

KINDS: dict[str, dict[str, Any]] = {
    "4:2:0": {"subsampling": 2},
    "4:4:4": {"subsampling": 0, "quality": 95},
    "4:2:2, restarts": {"subsampling": 1, "restart_marker_rows": 1},
    "coarse": {"quality": 10},
}


def progressive(path: Path, edge: int, gray: bool = False, **options: int) -> bytes:
    with Image.open(path) as image:
        small = image.convert("L" if gray else "RGB")
    small.thumbnail((edge, edge))
    out = io.BytesIO()
    small.save(out, "JPEG", progressive=True, **options)
    return out.getvalue()


def by_pillow(data: bytes) -> np.ndarray | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        except Exception:  # Pillow raises OSError, SyntaxError and more
            return None


def check_boxes(data: bytes, seed: int, count: int) -> tuple[int, int]:
    """Boxes that were made natively, and those that were left to Pillow."""
    header = core.jpeg_header(data)
    if header["not_plain"] is not None:
        return 0, count
    expected = by_pillow(data)
    draw = random.Random(seed)
    native = 0
    for _ in range(count):
        x, y = draw.randrange(header["width"]), draw.randrange(header["height"])
        width, height = draw.randint(1, header["width"] - x), draw.randint(1, header["height"] - y)
        try:
            pixels = core.decode_crop(data, x, y, width, height)
        except core.NeedsPillow:
            continue
        assert expected is not None, "Pillow refuses it"
        ours = np.frombuffer(pixels, np.uint8).reshape(height, width, 4)[..., :3]
        assert np.array_equal(ours, expected[y : y + height, x : x + width])
        native += 1
    return native, count - native


@pytest.mark.pixels
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gray", [False, True])
def test_boxes_of_whole_files(photographs: list[Path], kind: str, gray: bool) -> None:
    for number, path in enumerate(photographs[:4]):
        data = progressive(path, 200 + 90 * number, gray, **KINDS[kind])
        assert check_boxes(data, number, 8) == (8, 0)


@pytest.mark.pixels
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(photographs: list[Path], kind: str) -> None:
    good = progressive(photographs[0], 120, **KINDS[kind])
    draw = random.Random(kind)
    native = left = 0
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(bad) // 3, len(bad) - 2)
            if bad[at] != 0xFF and bad[at - 1] != 0xFF:
                bad[at] = draw.randrange(255)
        counts = check_boxes(bytes(bad), 1, 4)
        native += counts[0]
        left += counts[1]
    assert native and left


@pytest.mark.pixels
def test_missing_and_truncated_scans_are_left_to_pillow(photographs: list[Path]) -> None:
    good = progressive(photographs[0], 120)
    scans = [at for at in range(len(good) - 1) if good[at : at + 2] == b"\xff\xda"]
    assert len(scans) == 10
    for at in scans[1:]:
        for data in (good[:at] + b"\xff\xd9", good[: at + 40] + b"\xff\xd9", good[: at + 40]):
            header = core.jpeg_header(data)
            with pytest.raises(core.NeedsPillow):
                core.decode_crop(data, 0, 0, header["width"], header["height"])


@pytest.mark.pixels
@pytest.mark.parametrize("workers", [0, 1])
def test_batches_are_the_oracles(photographs: list[Path], workers: int) -> None:
    files = [progressive(path, 260, number % 3 == 0) for number, path in enumerate(photographs[:8])]
    files.append(files[1][:-2000] + b"\xff\xd9")  # concealed by libjpeg
    loader = DataLoader(EncodedImages(files, None, train(64)), 3, num_workers=workers, seed=1)
    assert_same(loader, list(loader.reference()))
