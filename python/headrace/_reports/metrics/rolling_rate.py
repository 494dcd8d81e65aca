"""The last minute of a loader: its speed, and how much of it the consumer waited."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import NamedTuple

from headrace._reports.metrics.totals import Totals

_MINUTE_S = 60.0
_MEAN_OF_S = 5.0


class _Point(NamedTuple):
    at_s: float
    units: int
    worked_s: float
    waited_s: float


class Recent:
    """Totals of the last minute, at times that are given.

    Args:
        of_samples: whether samples are counted, not batches.
    """

    def __init__(self, of_samples: bool) -> None:
        self.of_samples = of_samples
        self._points: deque[_Point] = deque()

    def add(self, at_s: float, totals: Totals) -> None:
        """Adds the totals at a time, of a clock that only goes forwards."""
        units = totals.samples if self.of_samples else totals.batches
        self._points.append(_Point(at_s, units, totals.worked_s, totals.waited_s))
        while self._points[-1].at_s - self._points[0].at_s > _MINUTE_S:
            self._points.popleft()

    @property
    def speeds(self) -> list[float]:
        """Units a second between each two times, the newest last."""
        return [(now.units - then.units) / (now.at_s - then.at_s) for then, now in pairwise(self._points)]

    def mean(self) -> tuple[float, float, float]:
        """Returns seconds, units a second and the consumer's share of work of the newest times; zeros if there is no
        batch among them."""
        if len(self._points) < 2:
            return 0.0, 0.0, 0.0
        newest = self._points[-1]
        oldest = next(one for one in self._points if newest.at_s - one.at_s <= _MEAN_OF_S or one is self._points[-2])
        seconds = newest.at_s - oldest.at_s
        worked, waited = newest.worked_s - oldest.worked_s, newest.waited_s - oldest.waited_s
        share = worked / (worked + waited) if worked + waited > 0 else 0.0
        return seconds, (newest.units - oldest.units) / seconds, share
