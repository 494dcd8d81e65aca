"""The matrices of warps, and the boxes of blurs, computed from the draws of a whole batch.

Python's own sine and cosine: numpy's differ from them, and torchvision and Pillow use Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from headrace._recipe.steps.draw_columns import WarpNumber
from headrace._recipe.steps.step_numbers import boxes_of, turn_of

Float64Array = npt.NDArray[np.float64]


def warp_numbers(column: WarpNumber, draws: Float64Array) -> Float64Array:
    """Returns the numbers of a rule, float64 (n, count), for draws (n, k)."""
    return np.array(_RULES[column.rule](draws[:, column.drawn :], column.constants)).reshape(len(draws), column.count)


def _rotations(draws: Float64Array, constants: Sequence[float]) -> Float64Array:
    """From the angle in degrees: the angle in [0, 360), and the cosine and sine in the matrix of Image.rotate."""
    made = np.tile(turn_of(0.0), (len(draws), 1))
    turned = np.flatnonzero(draws[:, 0])  # a policy's angles are 0 where it does another operation
    if len(turned):
        made[turned] = [turn_of(angle) for angle in draws[turned, 0].tolist()]
    return made


def _blur_boxes(draws: Float64Array, constants: Sequence[float]) -> Float64Array:
    """From the radius of a blur: the edge and the weights of its box."""
    return boxes_of(draws[:, 0])


def _linear_parts(draws: Float64Array, constants: Sequence[float]) -> list[tuple[float, ...]]:
    """From the draws of `RandomAffine`: the matrix without its shift, (a, b, d, e).

    It is torchvision's inverse of rotation, scale and shears. `constants` is the major version of its transforms: the
    two order the operations differently.
    """
    version = int(constants[0])
    return [_linear_part(version, *row) for row in draws[:, [0, 3, 4, 5]].tolist()]


def _linear_part(version: int, angle: float, scale: float, shear_x: float, shear_y: float) -> tuple[float, ...]:
    turn, sx, sy = math.radians(angle), math.radians(shear_x), math.radians(shear_y)
    along, across, slope = math.cos(turn - sy), math.sin(turn - sy), math.tan(sx)
    a, c = along / math.cos(sy), across / math.cos(sy)
    if version == 1:
        b = -along * slope / math.cos(sy) - math.sin(turn)
        d = -across * slope / math.cos(sy) + math.cos(turn)
    else:
        b = -(a * slope + math.sin(turn))
        d = math.cos(turn) - c * slope
    return d / scale, -b / scale, -c / scale, a / scale


def _perspectives(draws: Float64Array, constants: Sequence[float]) -> Float64Array:
    """From the eight draws of `RandomPerspective`: Pillow's eight coefficients.

    They are rounded to float32, as torchvision's. `constants`: the width and height of the image, and the largest
    distances by which a corner moves along each axis.
    """
    width, height, most_x, most_y = (int(number) for number in constants)
    moves = np.floor(draws[:, :8] * np.array([most_x + 1, most_y + 1] * 4)).clip(0, [most_x, most_y] * 4)
    right, bottom = width - 1, height - 1
    start = np.array([[0, 0], [right, 0], [right, bottom], [0, bottom]], dtype=np.float64)
    # Corners move inwards: those at the left and at the top by their draw, the others back from the range's far end.
    low = np.array([0, 0, right - most_x, 0, right - most_x, bottom - most_y, 0, bottom - most_y])
    ends = (low + moves).reshape(-1, 4, 2)
    rows = np.zeros((len(draws), 4, 2, 8))
    rows[:, :, 0, 0:2] = rows[:, :, 1, 3:5] = ends
    rows[:, :, 0, 2] = rows[:, :, 1, 5] = 1
    rows[:, :, :, 6:8] = -start[None, :, :, None] * ends[:, :, None, :]
    known = torch.from_numpy(start.reshape(1, 8, 1)).expand(len(draws), 8, 1)
    return _solve_systems(torch.from_numpy(rows.reshape(-1, 8, 8)), known).to(torch.float32).double().numpy()


def _solve_systems(rows: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Returns the solutions (n, 8) of systems of equations; those of a system without one are not numbers."""
    try:
        solution: torch.Tensor = torch.linalg.lstsq(rows, known, driver="gels").solution
    except RuntimeError:  # names the first such system only
        if len(rows) == 1:
            return torch.full((1, 8), math.nan, dtype=torch.float64, device="cpu")
        return torch.cat([_solve_systems(rows[i : i + 1], known[i : i + 1]) for i in range(len(rows))])
    return solution[..., 0]


_RULES: dict[str, Callable[[Float64Array, Sequence[float]], list[tuple[float, ...]] | Float64Array]] = {
    "turn": _rotations,
    "affine": _linear_parts,
    "perspective": _perspectives,
    "box": _blur_boxes,
}
