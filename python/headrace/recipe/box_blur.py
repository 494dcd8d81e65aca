"""The box of ``PIL.ImageFilter.GaussianBlur``, which is three box blurs along each axis."""

from __future__ import annotations

import numpy as np

_PASSES = 3
_ONE = 1 << 24


def box_of(radius: float) -> tuple[int, int, int]:
    """Returns (edge, weight, rest) of the box: a pixel is the mean of the `edge` pixels on each side of it and itself.

    `weight` is that of each of these, and `rest` that of the two next to the outermost ones, in units of 2^-24. The
    operations, their order and their types are Pillow's.

    Args:
        radius: of the Gaussian blur in pixels, 0 or more.
    """
    one, given = np.float32(1), np.float32(radius)
    variance = given * given / np.float32(_PASSES)
    length = np.float32(np.sqrt(12.0 * float(variance) + 1.0))
    whole = np.float32(np.floor((float(length) - 1.0) / 2.0))
    part = (2 * whole + one) * (whole * (whole + one) - 3 * variance)
    box = whole + part / (6 * (variance - (whole + one) * (whole + one)))
    edge = int(box)
    weight = int(np.float32(_ONE) / (box * 2 + one))
    return edge, weight, (_ONE - (edge * 2 + 1) * weight) % 2**32 // 2  # as unsigned integers of 32 bits
