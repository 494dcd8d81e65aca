"""Numbers that steps hold: boxes of Pillow's blur, angles of its rotation, the values that RandomErasing draws."""

from __future__ import annotations

import functools
import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import torch

_PASSES = 3  # of box blurs along each axis, which make up Pillow's GaussianBlur
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


def turn_of(angle: float) -> tuple[float, float, float]:
    """Returns the angle in [0, 360), and the cosine and sine of the matrix of ``PIL.Image.rotate``.

    Args:
        angle: in degrees, counter-clockwise.
    """
    reduced = angle % 360.0
    radians = -math.radians(reduced)
    return reduced, round(math.cos(radians), 15), round(math.sin(radians), 15)


#: Number of values that RandomErasing draws: equally likely quantiles of the standard normal distribution. A uniform u
#: in [0, 1) means quantile ``floor(u LEVELS)``. Where every element has a value of its own, u is a seed: the element k
#: of a box has the quantile ``noise16(u 2^53, k)``, four of them from each 64-bit number of the generator SplitMix64
#: (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
LEVELS = 1 << 16


@functools.cache
def noise_quantiles() -> torch.Tensor:
    """Returns the values, ascending, float32 (LEVELS,): quantile k is that of the share ``(k + 1/2) / LEVELS``."""
    upper = [NormalDist().inv_cdf((k + 0.5) / LEVELS) for k in range(LEVELS // 2, LEVELS)]
    return torch.tensor([-one for one in reversed(upper)] + upper, dtype=torch.float32, device="cpu")
