"""Chooses threads and prefetch by trials: a change that the loader's counters suggest is made, measured in turns with
what was before, and kept if it is faster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from headrace._base import loggers
from headrace._loading.autotune.ab_test import GAIN, Noise, Turns, Window
from headrace._loading.autotune.budget import Budget
from headrace._loading.bottleneck.batch_cost import Load
from headrace._loading.bottleneck.model import is_crowded

FIRST_DEPTH = 2  #: torch's default
_MOST_DEPTH = 32
_WAITS = 0.05  # a consumer that waits less has what a perfect loader would give it, within the tolerance
_CHANGED = 1.25  # a speed that differs this much asks for other numbers,
_IN_A_ROW = 3  # in this many windows, as one may be noise
_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 480.0
_KEPT = 64  # records of trials


class Choice(NamedTuple):
    """The number of threads, and of batches in flight beyond the one in use."""

    threads: int
    depth: int

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.depth} ahead" if self.threads != 1 else f"1 thread, {self.depth} ahead"


@dataclass(frozen=True)
class Trial:
    """One change that was tried.

    Attributes:
        before, after: the two choices.
        gain: the speed after the change, divided by that before it.
        kept: whether the change stayed.
    """

    before: Choice
    after: Choice
    gain: float
    kept: bool

    def __str__(self) -> str:
        return f"{self.after}: {self.gain:.2f}x of {self.before}, {'kept' if self.kept else 'taken back'}"


class Tuner:
    """The choice of one loader; it outlives epochs. Only the newest epoch tunes. A copy begins with the choice that was
    in force.

    Args:
        budget_now: returns the budget of cores and memory; called when an epoch begins.
        depth: given by the user, so that only the threads are chosen; None: chosen, too.

    Attributes:
        budget: of the newest epoch.
        choice: what is in force.
        first: the choice at the beginning.
        trials: the newest trials.
        settled: whether nothing is left to try for now.
        measured: whether any window was measured; short epochs have none.
        epoch: stands for what measures the newest epoch.
    """

    def __init__(self, budget_now: Callable[[], Budget], depth: int | None = None) -> None:
        self._budget_now = budget_now
        self.budget = budget = budget_now()
        self.fixed_depth = depth is not None
        self.choice = self.first = Choice(budget.first, FIRST_DEPTH if depth is None else depth)
        self.trials: deque[Trial] = deque(maxlen=_KEPT)
        self.settled = self.measured = False
        self.epoch: object = None
        self.most = budget.most
        self._most_depth = self.choice.depth if depth is not None else _MOST_DEPTH
        self._refused: set[Choice] = set()
        self._base = self._tried = self.choice
        self._turns: Turns | None = None  # of the trial under way
        self._noise = Noise()
        self._pause_s, self._waited_s = _PAUSE_S, 0.0
        self._speed, self._differ = 0.0, 0  # when the last trial ended; newest windows with another speed
        self._left: tuple[Choice, float] | None = None  # of the epoch before the newest change; of torch's workers

    @property
    def most_depth(self) -> int:
        """The largest depth that may be chosen."""
        return self._most_depth

    def limit_depth_by_memory(self, batch_bytes: int) -> None:
        """Bounds the prefetch by the budget of memory."""
        if self.fixed_depth:
            return
        self._most_depth = min(_MOST_DEPTH, self.budget.depth(batch_bytes))
        if max(self.choice.depth, self._base.depth) > self._most_depth:
            loggers.tuning.info("the memory allows %d batches ahead", self._most_depth)
            self._end_trial()
            self.choice = self._base = self._base._replace(depth=min(self._base.depth, self._most_depth))

    def refuse_more(self, threads: int) -> None:
        """Called if the system gives no more threads than `threads`."""
        loggers.tuning.info("the system gives no more threads than %d", threads)
        self.most = max(1, threads)
        self._end_trial()
        self.choice = self._base = self._base._replace(threads=min(self._base.threads, self.most))

    def begin_epoch(self, epoch: object = None) -> None:
        """Looks at the budget again. A trial under way goes on, as epochs may be shorter than one, unless the budget
        forbids its choice.

        Args:
            epoch: stands for what calls `observe` from now on.
        """
        self.epoch = epoch
        self.budget = self._budget_now()
        self.most = self.budget.most
        if max(self._base.threads, self._tried.threads) > self.most:
            self._end_trial()
        if self._turns is None:
            self.choose(self._base._replace(threads=min(self._base.threads, self.most)))

    def choose(self, choice: Choice) -> None:
        """Sets the choice in force."""
        if choice != self._base:
            loggers.tuning.info("taking %s instead of %s", choice, self._base)
        self.choice = self._base = choice

    def expect(self, choice: Choice, period: float) -> None:
        """Sets the choice for a whole epoch, after one whose batches took `period` seconds each."""
        if choice not in self._refused:
            self._left = self._base, period
            self.choose(choice)

    def revert_if_no_better(self, period: float) -> bool:
        """Compares the epoch that has ended with the one before `expect`; returns whether its choice was no better and
        is replaced by the one before it."""
        left, self._left = self._left, None
        if left is None:
            return False
        gain = left[1] / period
        self.trials.append(Trial(left[0], self._base, gain, gain > GAIN))
        loggers.tuning.info("%s", self.trials[-1])
        if gain > GAIN:
            return False
        self._refused.add(self._base)
        self.choose(left[0])
        return True

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle_tuner, (self._budget_now, self._base, self.fixed_depth)

    def observe(self, window: Window) -> None:
        """Takes a window in which `choice` was in force, and may change `choice`."""
        self.measured = True
        if self._turns is not None:
            self._continue_trial(self._turns, window)
            return
        speed = window.made
        self._waited_s += window.seconds
        differs = self._speed and not 1 / _CHANGED < speed / self._speed < _CHANGED
        self._differ = self._differ + 1 if differs else 0
        changed = self._differ == _IN_A_ROW
        if changed or self._waited_s > self._pause_s:
            self._pause_s = _PAUSE_S if changed else min(2 * self._pause_s, _LONGEST_PAUSE_S)
            self._refused.clear()
            self._speed, self._differ, self._waited_s = speed, 0, 0.0
        next_one = next((one for one in self._candidates(window) if one not in self._refused), None)
        self.settled = next_one is None
        if next_one is not None:
            self._turns = Turns([window], self._noise)
            self._tried = self.choice = next_one
            loggers.tuning.info("trying %s instead of %s", next_one, self._base)
        elif not self._speed:
            self._speed = speed

    def _continue_trial(self, turns: Turns, window: Window) -> None:
        """Continues a trial."""
        (turns.after if self.choice == self._tried else turns.before).append(window)
        kept = turns.verdict()
        if kept is None:
            self.choice = self._tried if turns.is_afters else self._base
            return
        self.trials.append(Trial(self._base, self._tried, turns.gain, kept))
        loggers.tuning.info("%s", self.trials[-1])
        self._noise = turns.noise.fade_noise()
        if kept:
            self._refused = {self._base}
            self._base = self._tried
            self._pause_s = _PAUSE_S
        else:
            self._refused.add(self._tried)
        self._speed, self._differ, self._waited_s = 0.0, 0, 0.0
        self._end_trial()
        self.choice = self._base

    def _end_trial(self) -> None:
        self._turns = None

    def _candidates(self, window: Window) -> Iterator[Choice]:
        """Yields what may be faster than the choice in force, the most likely first."""
        load, (threads, depth) = window.load, self._base
        crowded = is_crowded(load)
        if window.waits < _WAITS and not crowded:
            return
        idle = load.idle > _WAITS * threads * load.period
        if idle and load.own_delayed > _WAITS * load.period:  # they take the consumer's core for little
            yield from self._list_choices(depth, (threads - 1,))
        if idle and depth < self._most_depth:
            yield Choice(threads, min(2 * depth, self._most_depth))
        yield from self._list_choices(depth, self._thread_candidates(load, threads, crowded=crowded))
        if depth > FIRST_DEPTH and not self.fixed_depth:  # fewer batches may stay in the caches
            yield Choice(threads, max(FIRST_DEPTH, depth // 2))

    def _list_choices(self, depth: int, numbers: Iterable[int]) -> Iterator[Choice]:
        """Yields the choices of the numbers of threads that are possible."""
        for count in numbers:
            if count != self._base.threads and 1 <= count <= self.most:
                yield Choice(count, depth)

    def _thread_candidates(self, load: Load, threads: int, *, crowded: bool) -> Iterator[int]:
        one_a_core = self.budget.first
        asleep = sum(load.lanes.values()) - load.python_cpu - load.python_delayed
        if 2 * load.stuck > load.cpu + load.delayed or asleep > load.python_cpu:
            yield from (min(2 * threads, self.most), min(threads + (threads + 1) // 2, self.most))
        if crowded:
            yield from (threads // 2, threads - 1)
        if threads < one_a_core:
            yield one_a_core
        if threads < 2 * one_a_core:  # beside other programs more threads get a larger part of the cores
            yield threads + 1
        yield threads - 1
        if load.lanes:  # Python threads exclude each other, or do not: only a trial tells
            yield from (threads // 2, min(2 * threads, 2 * one_a_core))


def _unpickle_tuner(budget_now: Callable[[], Budget], choice: Choice, fixed_depth: bool) -> Tuner:
    made = Tuner(budget_now, choice.depth if fixed_depth else None)
    made.choose(choice)
    made.first = choice
    return made
