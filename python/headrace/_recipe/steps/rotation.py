"""The angle, cosine and sine of a rotation, as Pillow computes them."""

from __future__ import annotations

import math


def turn_of(angle: float) -> tuple[float, float, float]:
    """Returns the angle in [0, 360), and the cosine and sine of the matrix of ``PIL.Image.rotate``.

    Args:
        angle: in degrees, counter-clockwise.
    """
    reduced = angle % 360.0
    radians = -math.radians(reduced)
    return reduced, round(math.cos(radians), 15), round(math.sin(radians), 15)
