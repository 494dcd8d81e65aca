"""Measures settings of a loader, and chooses the next ones with the help of its verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from headrace._loading.autotune.budget import Budget, size_of_batch
from headrace._loading.autotune.tuner import Choice
from headrace.loader import DataLoader

_ENOUGH = 1.03  # a setting with fewer threads and batches is taken if it comes this close to the best
_WORTH = 1.03  # expected gains below it are not measured
_WARM_UP_S = 0.2
_LEAST_BATCHES = 4
_LEAST_POINTS = 3  # however short the time is
_MOST_OF_TORCH = 4  # worker processes a core


@dataclass
class Point:
    """One setting and what was measured.

    Attributes:
        choice: number of threads or workers, and of batches ahead.
        speeds: samples a second, of each measurement.
        bottleneck: that of the newest measurement.
        advised: what the verdict would change, in the order of the expected gains.
        batch_bytes: of the largest batch.
    """

    choice: Choice
    speeds: list[float] = field(default_factory=list)
    bottleneck: str = ""
    advised: list[Choice] = field(default_factory=list)
    batch_bytes: int = 0

    @property
    def speed(self) -> float:
        """The median."""
        ordered = sorted(self.speeds)
        middle = len(ordered) // 2
        return (ordered[middle] + ordered[-1 - middle]) / 2 if ordered else 0.0


class Sweep:
    """Measures settings of one dataset.

    Args:
        budget: of cores and memory.
        seconds: of the whole sweep, about; each setting gets an equal part.
        progress: called with each setting before it is measured.

    Attributes:
        points: by setting, in the order of their first measurement.
        interrupted: whether the user interrupted the sweep.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        budget: Budget,
        seconds: float,
        progress: Callable[[Choice], None] = lambda choice: None,
    ) -> None:
        self._dataset, self._batch_size, self._budget = dataset, batch_size, budget
        self._seconds, self._progress = seconds, progress
        self.points: dict[Choice, Point] = {}
        self.interrupted = False

    def run(self) -> None:
        """Measures until the time is over: each new setting once, then the fastest ones in turn."""
        end = time.perf_counter() + self._seconds
        each = max(0.3, self._seconds / 16)
        try:
            self._measure(Choice(self._budget.first, 2), each)
            while time.perf_counter() < end - 4 * each or len(self.points) < _LEAST_POINTS:
                choice = next((one for one in self._suggest_choices() if one not in self.points), None)
                if choice is None:
                    break
                self._measure(choice, each)
            while time.perf_counter() < end:
                for choice in [one.choice for one in sorted(self.points.values(), key=lambda one: -one.speed)[:3]]:
                    self._measure(choice, each)
        except KeyboardInterrupt:
            self.interrupted = True

    @property
    def chosen(self) -> Point:
        """The setting to take: the one with the fewest threads, then batches, that comes close to the fastest."""
        fastest = max(one.speed for one in self.points.values())
        near = [one for one in self.points.values() if one.speed * _ENOUGH >= fastest]
        return min(near, key=lambda one: one.choice)

    def _suggest_choices(self) -> Iterator[Choice]:
        """Yields the settings next to the fastest so far, those that its verdict advises first; `run` skips those
        that were measured."""
        best = max(self.points.values(), key=lambda one: one.speed)
        threads, depth = best.choice
        native = DataLoader(self._dataset, self._batch_size).native
        most = self._budget.most if native else min(self._budget.most, _MOST_OF_TORCH * self._budget.first)
        deepest = min(32, self._budget.depth(best.batch_bytes))
        around = [Choice(threads + 1, depth), Choice(threads - 1, depth), Choice(2 * threads, depth)]
        around += [Choice(threads, 2 * depth), Choice(threads // 2, depth)]
        for one in [*best.advised, *around]:
            if 1 <= one.threads <= most and (1 <= one.depth <= deepest or one.depth == 2):
                yield one

    def _measure(self, choice: Choice, seconds: float) -> None:
        self._progress(choice)
        point = self.points.get(choice) or Point(choice)
        loader: DataLoader[object] = DataLoader(
            self._dataset,
            self._batch_size,
            shuffle=True,
            drop_last=True,
            seed=0,
            num_workers=choice.threads,
            prefetch_factor=choice.depth,
        )
        try:
            speed = self._speed(loader, point, seconds)
            verdict = loader.stats().verdict
        finally:
            loader.close()
        point.speeds.append(speed)
        point.bottleneck = verdict.bottleneck
        changes = (verdict.change, *verdict.others) if verdict.change is not None else verdict.others
        for change in sorted(changes, key=lambda one: -one.gain):
            number = change.advice.rpartition("=")[2]
            if change.gain >= _WORTH and change.name in ("threads", "prefetch") and number.isdecimal():
                place = {"threads": "threads", "prefetch": "depth"}[change.name]
                point.advised.append(choice._replace(**{place: int(number)}))
        self.points.setdefault(choice, point)

    def _speed(self, loader: DataLoader[object], point: Point, seconds: float) -> float:
        """Returns samples a second, without the time in which everything starts."""
        batches = samples = 0
        begin = first = time.perf_counter()
        while True:
            of_epoch = 0
            for batch in loader:
                now = time.perf_counter()
                of_epoch += 1
                if batches == 0 and (of_epoch == 1 or now - first < min(_WARM_UP_S, seconds / 4)):
                    first = first if of_epoch > 1 else now
                    begin = now
                    point.batch_bytes = max(point.batch_bytes, size_of_batch(batch))
                    continue
                batches += 1
                samples += self._batch_size
                if now - begin >= seconds and batches >= _LEAST_BATCHES:
                    return samples / (now - begin)
            if batches == 0 and of_epoch == 0:
                return 0.0
            if batches == 0:  # an epoch of few batches: its start counts
                batches, samples, begin = of_epoch, of_epoch * self._batch_size, first
