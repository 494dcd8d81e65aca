"""The box of ``PIL.ImageFilter.GaussianBlur``, which is three box blurs along each axis."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_PASSES = 3
_ONE = 1 << 24


def boxes_of(radii: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Returns (edge, weight, rest) of the boxes, (n, 3): a pixel is the mean of itself and `edge` pixels on each side.

    `weight` is that of each of these, and `rest` that of the two next to the outermost ones, in units of 2^-24. The
    operations, their order and their types are Pillow's.

    Args:
        radii: of Gaussian blurs in pixels, (n,), 0 or more.
    """
    given, one = np.asarray(radii, np.float32), np.float32(1)
    variance = given * given / np.float32(_PASSES)
    length = np.sqrt(12.0 * variance.astype(np.float64) + 1.0).astype(np.float32)
    whole = np.floor((length.astype(np.float64) - 1.0) / 2.0).astype(np.float32)
    part = (2 * whole + one) * (whole * (whole + one) - 3 * variance)
    box = whole + part / (6 * (variance - (whole + one) * (whole + one)))
    edge = box.astype(np.int64)
    weight = (np.float32(_ONE) / (box * 2 + one)).astype(np.int64)
    rest = (_ONE - (edge * 2 + 1) * weight) % 2**32 // 2  # as unsigned integers of 32 bits
    return np.stack([edge, weight, rest], axis=-1).astype(np.float64)
