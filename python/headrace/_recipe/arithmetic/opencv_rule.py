"""Compares OpenCV's bilinear resize of bytes with the native one."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._recipe.arithmetic.tensor_rule import run_stage
from headrace._recipe.steps.steps import OPENCV_FILTER

#: INTER_LINEAR of OpenCV.
LINEAR = 1
#: (height, width) before and after: enlarged, reduced by a little, by halves and by more, along one axis, to one pixel.
SIZES = (
    ((41, 57), (90, 70)),
    ((41, 57), (33, 48)),
    ((300, 415), (224, 224)),
    ((150, 60), (224, 224)),
    ((448, 448), (224, 224)),
    ((64, 96), (32, 48)),
    ((41, 57), (9, 5)),
    ((41, 57), (41, 20)),
    ((41, 57), (70, 57)),
    ((3, 2), (64, 65)),
    ((1, 57), (33, 30)),
    ((41, 1), (20, 7)),
    ((41, 57), (1, 1)),
)


@functools.cache
def resizes_natively() -> bool:
    """Whether the installed OpenCV resizes bytes of three channels with INTER_LINEAR as the native code does.

    False if no program has imported it.
    """
    cv2: Any = sys.modules.get("cv2")
    if cv2 is None:
        return False
    random = np.random.default_rng(3)
    for before, (height, width) in SIZES:
        pixels = random.integers(0, 256, (*before, 4), dtype=np.uint8)
        for image in (pixels, np.where(pixels > 127, 255, 0).astype(np.uint8)):
            expected = cv2.resize(np.ascontiguousarray(image[..., :3]), (width, height), interpolation=LINEAR)
            if not np.array_equal(expected, resize(image, height, width)):
                return False
    return True


def resize(pixels: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.uint8]:
    """Returns the native resize of an RGBX image (H, W, 4), uint8: (height, width, 3)."""
    stage = {"box": (0, 0, *pixels.shape[1::-1]), "resize": (width, height), "filter": OPENCV_FILTER}
    return run_stage(pixels, stage, 3)
