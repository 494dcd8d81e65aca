"""The values that RandomErasing draws: equally likely quantiles of the standard normal distribution.

A uniform u in [0, 1) means quantile ``floor(u LEVELS)``. Where every element has a value of its own, u is a seed: the
element k of a box has the quantile ``noise16(u 2^53, k)``, four of them from each 64-bit number of the generator
SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
"""

from __future__ import annotations

import functools
from statistics import NormalDist

import torch

#: Number of different values.
LEVELS = 1 << 16


@functools.cache
def quantiles() -> torch.Tensor:
    """Returns the values, ascending, float32 (LEVELS,): quantile k is that of the share ``(k + 1/2) / LEVELS``."""
    upper = [NormalDist().inv_cdf((k + 0.5) / LEVELS) for k in range(LEVELS // 2, LEVELS)]
    return torch.tensor([-one for one in reversed(upper)] + upper, dtype=torch.float32, device="cpu")
