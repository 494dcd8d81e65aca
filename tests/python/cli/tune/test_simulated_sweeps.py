"""Whole sweeps with simulated speeds and noise: what is recommended, no measured setting beats by more than 5%."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace._cli.tune import measurement
from headrace._cli.tune.measurement import Point, Sweep
from headrace._loading.autotune.budget import Budget
from headrace._loading.autotune.tuner import Choice
from support import blobs

_REFUTED = 1.05
_START_S = 0.3  # of a measurement: before its time begins
_RUNS = 120  # of each kind of noise


class Machine:
    """Speeds of settings, and other programs that come and go."""

    def __init__(self, seed: int, kind: str, level: float) -> None:
        self.random = random.Random(f"{seed} {kind} {level}")
        self.kind, self.level, self.now = kind, level, 0.0
        self.cores = self.random.choice((1, 2, 4, 8))
        self._base = self.random.uniform(100, 5000)
        self._crowd = self.random.choice((0.0, 0.01, 0.03, 0.08))  # lost by each thread beyond the cores
        self._shallow = self.random.choice((0.0, 0.02, 0.06, 0.15))  # lost by few batches ahead
        self._drift = self.random.uniform(-0.3, 0.3)
        self._until = self._other = 0.0

    def true_speed(self, choice: Choice) -> float:
        threads, depth = choice
        crowded = 1 + self._crowd * max(0, threads - self.cores)
        return self._base * min(threads, self.cores) / crowded * (1 - self._shallow / depth)

    def slowness(self, choice: Choice, seconds: float) -> float:
        """The share of the speed that other programs take in the next seconds."""
        begin, self.now = self.now, self.now + seconds
        if self.kind == "single":  # one measurement or another
            return self.level * self.random.random() * self.random.choice((0, 1))
        if self.kind == "phases":  # some seconds with, some without
            lost, place = 0.0, begin
            while place < self.now:
                if place >= self._until:
                    self._other = 0.0 if self._other else self.level * self.random.uniform(0.5, 1)
                    self._until = place + self.random.expovariate(1 / 3)
                end = min(self.now, self._until)
                lost, place = lost + (end - place) * self._other, end
            return lost / seconds
        if self.kind == "drift":  # the machine gets slower, or faster
            return self._drift * begin / 30
        if self.kind == "outliers":
            much = 3.0 if self.random.random() < 0.1 else 0.3
            return min(0.95, self.level * abs(self.random.gauss(0, 1)) * much)
        return 0.0


class Simulated(Sweep):
    machine: Machine

    def _measure(self, choice: Choice, seconds: float) -> float:
        slow = self.machine.slowness(choice, seconds + _START_S)
        point = self.points.setdefault(choice, Point(choice))
        point.advised = [Choice(self.machine.cores, 2)] if self.machine.random.random() < 0.5 else []
        point.speeds.append(self.machine.true_speed(choice) * (1 - slow) * self.machine.random.lognormvariate(0, 0.01))
        return point.speeds[-1]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that runs one sweep and returns how many times as fast the fastest setting is as the recommended
    one; None: there is no recommendation."""
    monkeypatch.setattr(measurement, "DataLoader", lambda *_: SimpleNamespace(native=True))
    dataset = blobs(8)

    def simulate(seed: int, kind: str, level: float, seconds: float) -> float | None:
        machine = Machine(seed, kind, level)
        monkeypatch.setattr(measurement, "time", SimpleNamespace(perf_counter=lambda: machine.now))
        sweep = Simulated(dataset, 4, Budget(float(machine.cores), 2**33), seconds)
        sweep.machine = machine
        sweep.run()
        assert machine.now < 2 * seconds + 12  # at most one round longer
        if sweep.chosen is None:
            return None
        return max(map(machine.true_speed, sweep.points)) / machine.true_speed(sweep.chosen.choice)

    yield simulate


@pytest.mark.parametrize(
    ("kind", "level", "least"),  # the least share of sweeps that recommend something
    [
        ("none", 0.0, 0.95),
        ("single", 0.05, 0.8),
        ("single", 0.3, 0.0),
        ("phases", 0.1, 0.2),
        ("phases", 0.3, 0.0),
        ("phases", 0.5, 0.0),
        ("drift", 0.0, 0.5),
        ("outliers", 0.1, 0.0),
        ("outliers", 0.3, 0.0),
    ],
)
def test_a_recommendation_is_never_refuted(run: Any, kind: str, level: float, least: float) -> None:
    found = [run(seed, kind, level, seconds) for seed, seconds in itertools.product(range(_RUNS // 2), (10.0, 30.0))]
    recommended = [gain for gain in found if gain is not None]
    assert max(recommended, default=1.0) < _REFUTED, recommended
    assert len(recommended) >= least * len(found)


def test_other_programs_during_the_sweep_leave_no_recommendation(run: Any) -> None:
    def disturb(self: Simulated, choice: Choice, seconds: float) -> float:
        self.disturbed += len(self.race.rounds) % 2
        return measure(self, choice, seconds)

    measure = Simulated._measure
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Simulated, "_measure", disturb)
        assert run(1, "none", 0.0, 10.0) is None
    assert run(1, "none", 0.0, 10.0) is not None
