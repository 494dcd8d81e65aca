"""Measures settings of a loader, and chooses the next ones with the help of its verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch.utils.data import RandomSampler

from headrace._cli.tune.race import LEAST_ROUNDS, Race
from headrace._loading.autotune.budget import Budget, size_of_batch
from headrace._loading.autotune.tuner import Choice
from headrace.loader import DataLoader

_WORTH = 1.03  # expected gains below it are not measured
_DISTURBED = 1.15  # times as fast without other programs
_WARM_UP_S = 0.2
_LEAST_BATCHES = 4
_LEAST_POINTS = 3  # however short the time is
_PIECES = 40  # measurements in the time
_MOST_ROUNDS = 100
_EPOCH = 200  # batches of an epoch, at least
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

    @property
    def spread(self) -> float | None:
        """Half the distance from the slowest to the fastest measurement, as a share of the median; None: one alone."""
        return (max(self.speeds) - min(self.speeds)) / 2 / self.speed if len(self.speeds) > 1 and self.speed else None


class Sweep:
    """Measures settings of one dataset.

    Args:
        budget: of cores and memory.
        seconds: of the whole sweep, at most, about.
        progress: called with each setting before it is measured.

    Attributes:
        points: by setting, in the order of their first measurement.
        race: which of them to recommend.
        disturbed: number of measurements in which other programs used the cores.
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
        self._epoch = max(len(dataset), _EPOCH * batch_size)  # an epoch of few batches is hardly more than its start
        self.points: dict[Choice, Point] = {}
        self.race = Race()
        self.interrupted = False
        self.disturbed = 0

    def run(self) -> None:
        """Measures each new setting once in the first half of the time. Then, until the time is over, rounds of the
        setting that would be recommended and of those that may be faster; of some others where it is sure that none
        is, since what speeds a few seconds have need not be those of the next."""
        begin = time.perf_counter()
        each = max(0.3, self._seconds / _PIECES)
        try:
            self._explore(begin + self._seconds / 2, each)
            while self.race.target is not None and len(self.race.rounds) < _MOST_ROUNDS:
                spent = time.perf_counter() - begin
                if spent > (self._seconds if len(self.race.rounds) > LEAST_ROUNDS else 2 * self._seconds):
                    break
                self._measure_round(each)
        except KeyboardInterrupt:
            self.interrupted = True

    def _explore(self, end: float, each: float) -> None:
        first: dict[Choice, float] = {}
        try:
            choice: Choice | None = Choice(self._budget.first, 2)
            while choice is not None:
                first[choice] = self._measure(choice, each)
                if time.perf_counter() > end and len(self.points) >= _LEAST_POINTS:
                    break
                choice = next((one for one in self._suggest_choices() if one not in self.points), None)
        finally:
            self.race.add_round(first)

    def _measure_round(self, each: float) -> None:
        """Measures the target and its rivals, every second round in the reverse order."""
        target = self.race.target
        others = self.race.rivals() or self.race.challengers()
        choices = [one for one in (target, *others) if one is not None]
        if len(self.race.rounds) % 2 == 0:
            choices.reverse()
        speeds: dict[Choice, float] = {}
        for one in choices:
            speeds[one] = self._measure(one, each)
        self.race.add_round(speeds)

    @property
    def chosen(self) -> Point | None:
        """The setting to take; None: it is not sure that no other one is 5% faster."""
        found = None if self.is_disturbed else self.race.recommended
        return None if found is None else self.points[found]

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs used the cores in more than a quarter of the measurements: what is the fastest beside
        them need not be without them."""
        return self.disturbed > sum(len(one.speeds) for one in self.points.values()) / 4

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

    def _measure(self, choice: Choice, seconds: float) -> float:
        """Measures a setting once. Returns samples a second."""
        self._progress(choice)
        point = self.points.get(choice) or Point(choice)
        loader: DataLoader[object] = DataLoader(
            self._dataset,
            self._batch_size,
            sampler=RandomSampler(self._dataset, num_samples=self._epoch),
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
        changes = [one for one in (verdict.change, *verdict.others) if one is not None]
        self.disturbed += any(one.name == "free cores" and one.gain >= _DISTURBED for one in changes)
        for change in sorted(changes, key=lambda one: -one.gain):
            number = change.advice.rpartition("=")[2]
            if change.gain >= _WORTH and change.name in ("threads", "prefetch") and number.isdecimal():
                place = {"threads": "threads", "prefetch": "depth"}[change.name]
                point.advised.append(choice._replace(**{place: int(number)}))
        self.points.setdefault(choice, point)
        return speed

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
