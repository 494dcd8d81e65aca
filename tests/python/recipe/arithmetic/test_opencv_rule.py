"""OpenCV's bilinear resize of bytes against the native one; another arithmetic is noticed."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from headrace._base.native import core
from headrace._recipe.arithmetic import opencv_rule

pytestmark = pytest.mark.pixels

cv2: Any = pytest.importorskip("cv2")
ISAS = ["scalar", "avx2", "avx512", "neon"]
SIZES = 250  # pairs for each instruction set


def resize(pixels: np.ndarray, height: int, width: int, box: tuple[int, int, int, int], isa: str) -> np.ndarray:
    """The part `box` (left, top, width, height) of the native resize, uint8 (H, W, 3)."""
    stage = {"box": (0, 0, *pixels.shape[1::-1]), "resize": (width, height), "filter": "opencv_bilinear"}
    made = np.empty((box[3], box[2], 3), np.uint8)
    table = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
    core.fuse(pixels, {"stages": [stage], "last": {"box": box}}, table, made, layout="channels_last", isa=isa)
    return made


@pytest.mark.parametrize("isa", ISAS)
def test_pixels_are_those_of_opencv(isa: str) -> None:
    """Random sizes of noise, of black and white, and parts of the outputs."""
    random = np.random.default_rng(11)
    try:
        resize(np.zeros((2, 2, 4), np.uint8), 3, 3, (0, 0, 3, 3), isa)
    except ValueError:
        pytest.skip(f"this processor has no {isa}")
    for number in range(SIZES):
        most = 40 if number % 3 else 500
        height, width, rows, columns = (int(one) for one in random.integers(1, most, 4))
        if number % 7 == 0:
            rows, columns = 224, 224
        pixels = random.integers(0, 256, (height, width, 4), dtype=np.uint8)
        if number % 2:
            pixels = np.where(pixels > 127, 255, 0).astype(np.uint8)
        expected = cv2.resize(np.ascontiguousarray(pixels[..., :3]), (columns, rows), interpolation=cv2.INTER_LINEAR)
        left, top = int(random.integers(columns)), int(random.integers(rows))
        boxes = [(0, 0, columns, rows), (left, top, columns - left, rows - top), (0, 0, left + 1, top + 1)]
        for x, y, w, h in boxes:
            made = resize(pixels, rows, columns, (x, y, w, h), isa)
            assert np.array_equal(made, expected[y : y + h, x : x + w]), (
                (height, width),
                (rows, columns),
                (x, y, w, h),
            )


def test_the_installed_opencv_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opencv_rule.resizes_natively()
    original = cv2.resize

    def off_by_one(image: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        made = original(image, *args, **kwargs)
        made[-1, -1, -1] ^= 1
        return made

    opencv_rule.resizes_natively.cache_clear()
    try:
        monkeypatch.setattr(cv2, "resize", off_by_one)
        assert not opencv_rule.resizes_natively()
    finally:
        opencv_rule.resizes_natively.cache_clear()


def test_without_opencv_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    opencv_rule.resizes_natively.cache_clear()
    try:
        monkeypatch.setattr(opencv_rule, "sys", ModuleType("sys"))
        opencv_rule.sys.modules = {}  # type: ignore[attr-defined]
        assert not opencv_rule.resizes_natively()
    finally:
        opencv_rule.resizes_natively.cache_clear()
