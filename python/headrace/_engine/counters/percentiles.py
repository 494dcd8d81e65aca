"""Percentiles of durations that are counted in buckets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import SupportsInt

import numpy as np
import numpy.typing as npt

from headrace._base.native import core

#: The least duration of each bucket, in ns; those of ``core/base/trace/durations.h``.
BOUNDS: list[int] = core.duration_bounds()

Counts = npt.NDArray[np.int64]


class Durations:
    """Counts durations in the buckets of the native threads' counters. One thread adds, any reads."""

    def __init__(self) -> None:
        self.counts: list[int] = [0] * len(BOUNDS)

    def add(self, ns: int) -> None:
        self.counts[max(0, bisect_right(BOUNDS, ns) - 1)] += 1


def percentile(counts: Iterable[SupportsInt], share: float) -> float:
    """Returns the duration that a share of all durations does not exceed, in seconds, off by 12 % at most; 0 without
    any.

    Args:
        counts: durations in each bucket of `BOUNDS`.
        share: from 0 to 1.
    """
    sums = list(accumulate(int(one) for one in counts))
    if not sums or not sums[-1]:
        return 0.0
    bucket = next(number for number, total in enumerate(sums) if total >= share * sums[-1] and total)
    end = BOUNDS[bucket + 1] if bucket + 1 < len(BOUNDS) else BOUNDS[bucket]
    return (BOUNDS[bucket] + end) / 2e9
