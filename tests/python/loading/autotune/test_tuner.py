"""The tuner's choices on simulated pipelines: near the best fixed value, in time, under noise, within the budget."""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from headrace._loading.autotune.ab_test import Window
from headrace._loading.autotune.budget import Budget
from headrace._loading.autotune.tuner import Choice, Tuner
from headrace._loading.autotune.tuner_summary import NOTHING_MEASURED, summarise
from headrace._loading.bottleneck.batch_cost import Load, Setting

BATCH = 32
PLENTY = 2**34


@dataclass
class Pipeline:
    """A pipeline of which one batch takes known times.

    Attributes:
        cores: that its threads share.
        cpu, stuck: seconds of a sample on a core, and in a wait without one.
        step: the consumer's seconds between batches.
        python: seconds of a sample in Python steps, which exclude each other.
        crowding: the share that each thread beyond the cores costs.
        gaps: share of the time that threads are idle for want of batches, at depth 1.
        cached: the most batches in the making, of all threads, that stay in the caches; 0: the number does not matter.
            Other choices reach three quarters of the speed, and their threads take the consumer's core now and then.
    """

    cores: float = 2.0
    cpu: float = 0.0
    stuck: float = 0.0
    step: float = 0.0
    python: float = 0.0
    crowding: float = 0.0
    gaps: float = 0.0
    cached: int = 0
    noise: Callable[[], float] = field(default=lambda: 1.0)

    def rate(self, choice: Choice) -> float:
        """Samples a second."""
        rates = [choice.threads / (self.cpu + self.stuck)]
        if self.cpu:
            beyond = max(0.0, choice.threads * self.cpu / (self.cpu + self.stuck) - self.cores)
            rates.append(self.cores / self.cpu * (1 - self.crowding * beyond))
        if self.python:
            rates.append(1 / self.python)
        making = min(rates) * (1 - self.gaps / choice.depth)
        if self._misses(choice):
            making *= 0.75
        return min(making, BATCH / self.step if self.step else making)

    def _misses(self, choice: Choice) -> bool:
        return 0 < self.cached < choice.threads * choice.depth

    def window(self, choice: Choice, seconds: float = 0.3) -> Window:
        rate = self.rate(choice) * self.noise()
        period = BATCH / rate
        busy = self.cpu * BATCH + self.stuck * BATCH
        load = Load(
            Setting(choice.threads, self.cores, choice.depth),
            1,
            period,
            self.step,
            max(0.0, period - self.step),
            cpu=self.cpu * BATCH,
            stuck=self.stuck * BATCH,
            idle=max(0.0, choice.threads * period - busy),
            lanes={"python": self.python * BATCH} if self.python else {},
            python_cpu=self.python * BATCH,
            own_delayed=0.4 * period if self._misses(choice) and choice.threads > 1 else 0.0,
        )
        return Window(seconds, load, max(0.0, period - self.step) / period, rate, rate / BATCH)


def run(pipeline: Pipeline, tuner: Tuner, seconds: float) -> None:
    """Gives the tuner windows for some time; a change costs a tenth of a second."""
    spent = 0.0
    while spent < seconds:
        before = tuner.choice
        window = pipeline.window(before)
        tuner.observe(window)
        spent += window.seconds + (0.1 if tuner.choice != before else 0.0)


def tuner_of(cores: float = 2.0, memory: int = PLENTY, depth: int | None = None) -> Tuner:
    return Tuner(lambda: Budget(cores, memory), depth)


def best(pipeline: Pipeline, tuner: Tuner) -> float:
    """The rate of the best fixed choice."""
    return max(pipeline.rate(Choice(threads, depth)) for threads in range(1, tuner.most + 1) for depth in (1, 2, 4, 8))


SITUATIONS = {
    "decoding": Pipeline(cpu=0.01, crowding=0.02),
    "a slow store": Pipeline(cpu=0.001, stuck=0.05),
    "a slow store and decoding": Pipeline(cpu=0.01, stuck=0.03),
    "one core of quota": Pipeline(cores=1.0, cpu=0.01, crowding=0.1),
    "a Python step": Pipeline(cpu=0.001, python=0.01),
    "gaps between batches": Pipeline(cpu=0.01, gaps=0.8),
    "more threads are slower": Pipeline(cores=8.0, cpu=0.001, python=0.01, crowding=0.3),
    "rows that are copied": Pipeline(cpu=1e-6, python=1e-5, gaps=0.5, cached=2),
}


def drifting(seed: int, sudden: float, slow: float) -> Callable[[], float]:
    """Returns noise of a machine that others use: of single windows, and over some ten of them."""
    draw, state = random.Random(seed), 0.0

    def one() -> float:
        nonlocal state
        state = 0.9 * state + draw.gauss(0.0, slow * math.sqrt(1 - 0.9**2))
        return max(0.2, draw.gauss(1.0, sudden) + state)

    return one


@pytest.mark.parametrize(("sudden", "slow"), [(0.02, 0.0), (0.05, 0.05)])
@pytest.mark.parametrize("name", SITUATIONS)
def test_near_the_best_fixed_choice_within_thirty_seconds_under_noise(name: str, sudden: float, slow: float) -> None:
    pipeline = SITUATIONS[name]
    misses = 0
    for seed in range(100):
        tuner = tuner_of(pipeline.cores)
        run(replace(pipeline, noise=drifting(seed, sudden, slow)), tuner, 30.0)
        misses += pipeline.rate(tuner._base) < 0.95 * best(pipeline, tuner)
    assert misses <= 5, f"{misses} of 100"


def test_one_noisy_window_does_not_begin_the_search_again() -> None:
    tuner, pipeline = tuner_of(), Pipeline(cpu=0.01, crowding=0.1)
    run(pipeline, tuner, 12.0)
    count = len(tuner.trials)
    for _ in range(3):
        tuner.observe(replace(pipeline.window(tuner.choice), made=1.0))
        run(pipeline, tuner, 2.0)
    assert len(tuner.trials) == count


def test_what_does_not_help_is_taken_back_and_not_tried_at_once_again() -> None:
    tuner = tuner_of()
    run(Pipeline(cpu=0.01, crowding=0.1), tuner, 20.0)
    assert tuner.choice == tuner.first == Choice(2, 2)
    assert tuner.settled
    tried = [one.after for one in tuner.trials]
    assert len(tried) == len(set(tried))
    assert not any(one.kept for one in tuner.trials)
    run(Pipeline(cpu=0.01, crowding=0.1), tuner, 60.0)
    assert len(tuner.trials) > len(tried)  # after a pause


def test_a_consumer_that_does_not_wait_is_left_alone() -> None:
    tuner = tuner_of()
    run(Pipeline(cpu=0.001, step=1.0), tuner, 100.0)
    assert tuner.choice == tuner.first
    assert not tuner.trials
    assert tuner.settled


def test_another_load_is_tuned_anew_without_a_pause() -> None:
    tuner = tuner_of()
    run(Pipeline(cpu=0.01, crowding=0.1), tuner, 10.0)
    slow = Pipeline(cpu=0.001, stuck=0.05)
    run(slow, tuner, 15.0)
    assert slow.rate(tuner.choice) > 0.9 * best(slow, tuner)


def test_a_depth_that_is_given_stays() -> None:
    tuner = tuner_of(depth=3)
    run(Pipeline(cpu=0.01, gaps=0.8), tuner, 30.0)
    assert tuner.choice.depth == 3
    tuner.limit_depth_by_memory(2**40)
    assert tuner.choice.depth == 3


def test_memory_bounds_the_depth() -> None:
    tuner = tuner_of(memory=400)
    tuner.limit_depth_by_memory(100)
    run(Pipeline(cpu=0.01, gaps=0.8), tuner, 30.0)
    assert tuner.choice.depth == 3
    tuner.limit_depth_by_memory(200)  # a larger batch
    assert tuner.choice.depth == 1


def test_the_system_may_refuse_threads() -> None:
    tuner = tuner_of()
    pipeline = Pipeline(cpu=0.001, stuck=0.05)
    while tuner.choice.threads == 2:
        tuner.observe(pipeline.window(tuner.choice))
    tuner.refuse_more(2)
    run(pipeline, tuner, 10.0)
    assert tuner.choice.threads <= 2


def test_a_trial_goes_on_in_the_next_epoch() -> None:
    """Epochs of one window each: a trial that each epoch dropped would be begun again for ever."""
    tuner = tuner_of()
    pipeline = Pipeline(cpu=0.001, stuck=0.05)
    for _ in range(60):
        tuner.begin_epoch()
        tuner.observe(pipeline.window(tuner.choice))
    assert tuner.choice.threads >= 16
    assert any(one.kept for one in tuner.trials)


def test_epochs_too_short_to_measure_are_told() -> None:
    tuner = tuner_of()
    for _ in range(3):
        tuner.begin_epoch()
    assert str(summarise(tuner)).endswith(NOTHING_MEASURED)
    tuner.observe(Pipeline(cpu=0.001, stuck=0.05).window(tuner.choice))
    assert "searching" in str(summarise(tuner))


def test_a_trial_that_a_smaller_budget_forbids_is_dropped() -> None:
    cores = [4.0]
    tuner = Tuner(_Cores(cores), None)
    tuner.choose(Choice(32, 2))
    tuner.observe(Pipeline(cpu=0.001, stuck=1.0).window(tuner.choice))
    assert tuner.choice == Choice(64, 2)
    cores[0] = 1.0  # at most 32 threads
    tuner.begin_epoch()
    assert tuner.choice == Choice(32, 2)
    assert not tuner.trials


def test_the_budget_is_looked_at_again_with_each_epoch() -> None:
    cores = [8.0]
    tuner = Tuner(_Cores(cores), None)
    tuner.choose(Choice(64, 2))
    cores[0] = 1.0
    tuner.begin_epoch()
    assert tuner.choice.threads == tuner.most == 32


@dataclass
class _Cores:
    cores: list[float]

    def __call__(self) -> Budget:
        return Budget(self.cores[0], PLENTY)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_on_from_the_choice_and_has_trials_of_its_own(copied: Callable[[Tuner], Tuner]) -> None:
    tuner = Tuner(_Cores([2.0]), 5)
    tuner.choose(Choice(7, 5))
    other = copied(tuner)
    assert (other.choice, other.fixed_depth) == (Choice(7, 5), True)
    other.choose(Choice(1, 5))
    assert tuner.choice == Choice(7, 5)
