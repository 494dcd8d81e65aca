"""Follows an epoch: the consumer's steps and waits, and marks between which everything else is counted."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace._engine.counters.percentiles import Durations
from headrace._engine.counters.thread_times import NEVER, Scheduled, scheduler_times_of_threads

_MOST_MARKS = 32
_FIRST_INTERVAL_NS = 10_000_000
_LEAST_BATCHES = 2  # between two marks
_RECENT = 256


class Step(NamedTuple):
    """One batch, in nanoseconds: the consumer's own work before it asked, its wait for what others make, and the rest
    of ``next()``."""

    own: int
    blocked: int
    handed: int


@dataclass(frozen=True)
class Seen:
    """What the loader's threads or processes have done since they began.

    Attributes:
        stages: busy nanoseconds by stage.
        items: items by stage.
        workers, python: the times of the native threads or worker processes, and of the Python threads.
        count: number of `workers`.
    """

    stages: dict[str, int] = field(default_factory=dict)
    items: dict[str, int] = field(default_factory=dict)
    workers: Scheduled = NEVER
    python: Scheduled = NEVER
    count: int = 0


@dataclass(frozen=True)
class Mark:
    """All totals at the end of one batch.

    Attributes:
        at_ns: time of the mark.
        batches: batches handed out.
        steps: sums of all steps.
        parts: nanoseconds by part: of the consumer's thread in ``next()``; "collate_fn" in other threads, too.
        process_ns: time that all threads of this process ran on cores.
        caller: the times of the consumer's thread.
    """

    at_ns: int
    batches: int
    steps: Step
    parts: dict[str, int]
    seen: Seen
    process_ns: int
    caller: Scheduled = NEVER

    def plus_window(self, begin: Mark, end: Mark) -> Mark:
        """Returns these totals and what was counted from `begin` to `end`, as if that had followed at once."""
        seen = Seen(
            _plus_difference(self.seen.stages, begin.seen.stages, end.seen.stages),
            _plus_difference(self.seen.items, begin.seen.items, end.seen.items),
            self.seen.workers.plus(end.seen.workers.since(begin.seen.workers)),
            self.seen.python.plus(end.seen.python.since(begin.seen.python)),
            end.seen.count,
        )
        return Mark(
            self.at_ns + end.at_ns - begin.at_ns,
            self.batches + end.batches - begin.batches,
            Step(*(sum_ + now - then for sum_, then, now in zip(self.steps, begin.steps, end.steps, strict=True))),
            _plus_difference(self.parts, begin.parts, end.parts),
            seen,
            self.process_ns + end.process_ns - begin.process_ns,
            self.caller.plus(end.caller.since(begin.caller)),
        )


def _plus_difference(total: dict[str, int], begin: dict[str, int], end: dict[str, int]) -> dict[str, int]:
    return {name: total.get(name, 0) + value - begin.get(name, 0) for name, value in end.items()}


@dataclass(frozen=True)
class History:
    """Epochs joined to one: the time between the last mark of one and the first of the next is left out.

    Attributes:
        marks, steps: the newest of both, in order.
    """

    marks: tuple[Mark, ...] = ()
    steps: tuple[Step, ...] = ()

    def followed_by(self, marks: Sequence[Mark], steps: Sequence[Step]) -> History:
        """Returns the history with one more epoch."""
        if not marks or not self.marks:
            return History(tuple(marks), tuple(steps)) if marks else self
        joined = list(self.marks)
        for begin, end in itertools.pairwise(marks):
            joined.append(joined[-1].plus_window(begin, end))
        return History(tuple(joined[-_MOST_MARKS:]), (*self.steps, *steps)[-_RECENT:])


class Spending:
    """A context manager that counts the time spent in it."""

    __slots__ = ("_begin_ns", "_pace", "_part")

    def __init__(self, pace: EpochTiming, part: str) -> None:
        self._pace, self._part = pace, part

    def __enter__(self) -> None:
        self._begin_ns = time.perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        self._pace.add_time(self._part, time.perf_counter_ns() - self._begin_ns)


class EpochTiming:
    """Counts of one epoch. One thread at a time calls `handed_out`; `add_time` is for any thread.

    Marks begin with the first batch, whose wait is the time in which everything starts. When there are too many, every
    second one is dropped and the interval doubles, so an epoch of any length costs little.

    Args:
        look: returns what the loader's threads have done.

    Attributes:
        marks: totals in order.
        steps, waits: durations of the consumer's own steps and of its calls of ``next()``.
        recent: the newest steps.
        samples: number of samples handed out.
        earlier: the loader's epochs before this one.
    """

    def __init__(self, look: Callable[[], Seen]) -> None:
        self.earlier = History()
        self.marks: list[Mark] = []
        self.steps, self.waits = Durations(), Durations()
        self.recent: deque[Step] = deque(maxlen=_RECENT)
        self.stepped_ns = self.waited_ns = 0
        self.batches = self.samples = 0
        self._look: Callable[[], Seen] | None = look
        self._parts: dict[tuple[int, str], int] = {}  # by thread: each has one writer
        self._sums = [0, 0, 0]
        self._interval_ns, self._last_ns = _FIRST_INTERVAL_NS, 0

    def add_time(self, part: str, ns: int) -> None:
        """Counts time of the calling thread."""
        key = threading.get_ident(), part
        self._parts[key] = self._parts.get(key, 0) + ns

    def handed_out(self, begin_ns: int, end_ns: int, blocked_ns: int, *, steady: bool = True, samples: int = 0) -> None:
        """Counts a batch that is about to be returned.

        Args:
            begin_ns, end_ns: when it was asked for, and now.
            blocked_ns: part of this time in which the consumer's thread waited for others, or made the batch itself.
            steady: whether further batches are in flight; at the end of an epoch the threads run dry.
            samples: number of its samples; 0: not known.
        """
        last, self._last_ns = self._last_ns, end_ns
        self.batches += 1
        self.samples += samples
        waited_ns = end_ns - begin_ns
        self.waits.add(waited_ns)
        self.waited_ns += waited_ns
        if last == 0:
            self._mark(end_ns)
            return
        own_ns, handed_ns = begin_ns - last, waited_ns - blocked_ns
        self.steps.add(own_ns)
        self.stepped_ns += own_ns
        self.recent.append(Step(own_ns, blocked_ns, handed_ns))
        own, blocked, handed = self._sums
        self._sums = [own + own_ns, blocked + blocked_ns, handed + handed_ns]
        newest = self.marks[-1] if self.marks else None
        due = newest is None or (
            end_ns - newest.at_ns >= self._interval_ns and self.batches - newest.batches >= _LEAST_BATCHES
        )
        if (steady and due) or (not steady and len(self.marks) == 1):  # a short epoch has one window at least
            self._mark(end_ns)

    def parts(self) -> dict[str, int]:
        """Returns what `add_time` counted, in nanoseconds by part, summed over threads."""
        parts: dict[str, int] = {}
        for (_, part), ns in list(self._parts.items()):
            parts[part] = parts.get(part, 0) + ns
        return parts

    def follow(self, before: EpochTiming) -> None:
        """Notes the epoch before this one, and those that it followed."""
        self.earlier = before.earlier.followed_by(before.marks, before.recent)

    def quiet_ns(self) -> int:
        """Returns the time since the newest batch was handed out; 0 before the first."""
        last = self._last_ns
        return time.perf_counter_ns() - last if last else 0

    def look(self, now_ns: int) -> Mark | None:
        """Returns all totals of now; None after `end`. Called in the consumer's thread."""
        look = self._look  # read once: another thread may close the loader meanwhile
        if look is None:
            return None
        steps, caller = Step(*self._sums), scheduler_times_of_threads((threading.get_native_id(),))
        return Mark(now_ns, self.batches, steps, self.parts(), look(), time.process_time_ns(), caller)

    def _mark(self, now_ns: int) -> None:
        mark = self.look(now_ns)
        if mark is None:
            return
        self.marks.append(mark)
        if len(self.marks) > _MOST_MARKS:
            del self.marks[1::2]
            self._interval_ns *= 2

    def end(self) -> None:
        """Makes no more marks: the threads end, or belong to another epoch."""
        self._look = None

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_look": None}
