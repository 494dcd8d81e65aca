"""Occurrences of samplers that know them from a position, so that nothing is counted: neither in memory nor in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._loading.epoch.sampler_kinds import plans_occurrences
from headrace.sampler.distributed import Share

Int64s = npt.NDArray[np.int64]


class PlannedOccurrences:
    """How often the current epoch of a sampler has yielded each item of a share before.

    Args:
        sampler: one for which `plans_occurrences` holds, in its epoch.
        share: of its order; items that fill the last batches of ranks are repeats of the first ones.
    """

    def __init__(self, sampler: Any, share: Share[object]) -> None:
        self._sampler, self._share = sampler, share
        self._length, self._taken, self._offset = len(sampler), 0, 0

    @classmethod
    def of(cls, sampler: object, share: Share[object]) -> PlannedOccurrences | None:
        """Returns those of a sampler; None if they have to be counted."""
        return cls(sampler, share) if plans_occurrences(sampler) else None

    def jump(self, items: int, offset: int = 0) -> None:
        """Goes on after the first `items` of the share, which begins after `offset` items of all ranks."""
        self._taken, self._offset = items, offset

    def take(self, count: int) -> Int64s:
        """Returns those of the next items, int64 (count,). A repeat counts on from the most that the epoch has."""
        step = self._share.world_size
        first = self._offset + self._share.rank + self._taken * step
        self._taken += count
        end = first + count * step
        known: Int64s = self._sampler.occurrences(min(first, self._length), min(end, self._length))[::step]
        if len(known) == count:
            return known
        repeats = np.arange(first, end, step)[len(known) :] - self._length
        return np.concatenate([known, self._sampler.most_occurrences() + repeats])
