"""Pillow's coefficients of rotations, affine maps and perspectives, computed as torchvision does."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

#: The filters with which Pillow warps.
WARP_FILTERS = ("nearest", "bilinear", "bicubic")

#: (x, y) in pixels.
Point = tuple[float, float]
Points = Sequence[Sequence[int]]


def inverse_affine_matrix(
    center: Point, angle: float, translate: tuple[int, int], scale: float, shear: tuple[float, float], version: int
) -> list[float]:
    """Returns Pillow's matrix of a rotation, shears and a scale about `center`, then a shift.

    Args:
        center: fixed point of the map without its shift, in pixels.
        angle: in degrees.
        translate: the shift in pixels.
        scale: factor of lengths, not 0.
        shear: along x and y, in degrees.
        version: of torchvision's transforms, 1 or 2: the two order the operations differently.
    """
    (cx, cy), (tx, ty) = center, translate
    rot, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(rot - sy) / math.cos(sy)
    c = math.sin(rot - sy) / math.cos(sy)
    if version == 1:
        b = -math.cos(rot - sy) * math.tan(sx) / math.cos(sy) - math.sin(rot)
        d = -math.sin(rot - sy) * math.tan(sx) / math.cos(sy) + math.cos(rot)
    else:
        b = -(a * math.tan(sx) + math.sin(rot))
        d = math.cos(rot) - c * math.tan(sx)
    to_x, to_y = (d / scale, -b / scale), (-c / scale, a / scale)
    if version == 1:
        x = to_x[0] * (-cx - tx) + to_x[1] * (-cy - ty) + cx
        y = to_y[0] * (-cx - tx) + to_y[1] * (-cy - ty) + cy
    else:
        x = cx - to_x[0] * (cx + tx) - to_x[1] * (cy + ty)
        y = cy - to_y[0] * (cx + tx) - to_y[1] * (cy + ty)
    return [*to_x, x, *to_y, y]


def perspective_moves(height: int, width: int, distortion: float) -> tuple[int, int]:
    """Returns the largest numbers of pixels by which a corner moves along x and y."""
    return int(distortion * (width // 2)), int(distortion * (height // 2))


def corners(height: int, width: int) -> list[list[int]]:
    """Returns the corner pixels (x, y): top left, top right, bottom right, bottom left."""
    return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]


def perspective_coefficients(start: Points, end: Points) -> list[float]:
    """Returns Pillow's eight coefficients of the perspective that moves four points to others, rounded to float32.

    Raises:
        RuntimeError: three of the points are on one line.
    """
    rows = []
    for (x, y), (u, v) in zip(end, start, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    system = torch.tensor(rows, dtype=torch.float64, device="cpu")
    known = torch.tensor(start, dtype=torch.float64, device="cpu").view(8)
    solved: list[float] = torch.linalg.lstsq(system, known, driver="gels").solution.to(torch.float32).tolist()
    return solved
