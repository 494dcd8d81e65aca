"""The matrices of Pillow's affine transforms with which torchvision shears and translates an image."""

from __future__ import annotations

import math

#: (a, b, c, d, e, f): pixel (x, y) of the output shows (a x + b y + c, d x + e y + f) of the input.
Matrix = tuple[float, float, float, float, float, float]


def shear_x(level: float) -> Matrix:
    """Returns the matrix that moves row y by `level` times y pixels, about the corner (0, 0).

    The level goes through degrees and back, as in torchvision; that can change its last bits.
    """
    return 1.0, math.tan(_shear_angle(level)), 0.0, 0.0, 1.0, 0.0


def shear_y(level: float) -> Matrix:
    """Returns the matrix that moves column x by `level` times x pixels, about the corner (0, 0)."""
    angle = _shear_angle(level)
    return 1.0, 0.0, 0.0, math.sin(angle) / math.cos(angle), 1.0, 0.0


def translation(right: int, down: int) -> Matrix:
    """Returns the matrix that moves an image by whole pixels."""
    return 1.0, 0.0, float(-right), 0.0, 1.0, float(-down)


def _shear_angle(level: float) -> float:
    return math.radians(math.degrees(math.atan(level)))
