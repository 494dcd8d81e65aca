"""Samples of distributions, and how far two of them are apart."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headrace._recipe.draws.draws import Draws

#: Samples whose distributions are compared. For 100,000 of them, in some minutes:
#: HEADRACE_DRAWS=100000 python -m pytest tests/python/recipe/draws
COUNT = int(os.environ.get("HEADRACE_DRAWS", "4000"))
#: Above it, two samples of COUNT numbers of one distribution have a Kolmogorov-Smirnov distance once in 10,000 times.
MOST = 2.23 * (2 / COUNT) ** 0.5


def rows_of(recipe: Any) -> np.ndarray:
    """The draws of COUNT samples of a loader."""
    return Draws(recipe.columns, 3).batch(0, np.arange(COUNT), np.zeros(COUNT, np.int64))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference between the distribution functions of two samples, over all columns."""
    found = []
    for one, other in zip(a.T, b.T, strict=True):
        at = np.union1d(one, other)
        below = [np.searchsorted(np.sort(sample), at, side="right") / COUNT for sample in (one, other)]
        found.append(float(np.abs(below[0] - below[1]).max()))
    return max(found)
