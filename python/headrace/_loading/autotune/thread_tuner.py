"""Tunes native threads and prefetch while an epoch runs, by its windows of batches. `worker_tuner` does it for torch's
processes, between epochs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from headrace._engine.counters.epoch_timing import EpochTiming, Mark
from headrace._engine.engine import Flight
from headrace._loading.autotune.ab_test import Window
from headrace._loading.autotune.budget import size_of_batch
from headrace._loading.autotune.tuner import Choice, Tuner
from headrace._loading.bottleneck.batch_cost import Setting, mean_load_between

_SLICE_S = 0.25  # a wait is cut into these, so that slow batches do not stop the tuning
_WINDOW_NS = 300_000_000
_SLOW_NS = 1_000_000_000  # a window that no batch ends is this long
_SETTLE_NS = 100_000_000  # after a change, and at least one batch for each that was in flight
_BATCHES = 8  # fewer in a window do not tell the consumer's speed
_SAMPLES = 32  # fewer tell nothing
_MEASURED = 3  # batches whose bytes are counted; later every 64th, since sizes may vary
_MS = 1e-3


class Threads(Protocol):
    """The part of an engine that is used."""

    @property
    def closed(self) -> bool: ...

    @property
    def decoder(self) -> str: ...

    def resize(self, threads: int) -> None: ...

    def wait(self, flight: Flight, seconds: float) -> bool: ...


class Ahead(Protocol):
    """The part of a queue that is used."""

    ahead: int

    @property
    def ended(self) -> bool: ...


class Tuning:
    """Tunes one epoch, in the thread that takes its batches: in its waits, and between two batches.

    Args:
        tuner: of the loader.
        pace, engine, queue: of the epoch.
        collating: number of threads that call the collate_fn.
        clock: nanoseconds.
    """

    def __init__(
        self,
        tuner: Tuner,
        pace: EpochTiming,
        engine: Threads,
        queue: Ahead,
        collating: int = 0,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._tuner, self._pace, self._engine, self._queue = tuner, pace, engine, queue
        self._collating, self._clock = collating, clock
        self._batches = self._largest = 0
        self._waited_ns = 0
        self._begin: Mark | None = None  # None: the change is not in force everywhere yet
        self._begin_waited = self._begin_batches = 0
        self._at_a_batch = False  # whether the window began when a batch was handed out
        self._changed_ns, self._changed_batches = clock(), 0
        self._token = object()
        tuner.begin_epoch(self._token)
        self._in_force: Choice | None = None
        self._apply_choice()

    def wait(self, flight: Flight, seconds: float) -> bool:
        """Waits for a batch as the engine does; looks at the clock meanwhile."""
        left = seconds
        while True:
            begin, patience = self._clock(), min(left, _SLICE_S)
            ready = self._engine.wait(flight, patience)
            now = self._clock()
            took = (now - begin) / 1e9
            self._waited_ns += now - begin
            left -= took
            if ready:
                return True
            if left <= _MS or took < patience - _MS:  # the time is over, or the batch is given up
                return False
            self._observe_window(now, at_a_batch=False)

    def handed_out(self, batch: object, now_ns: int) -> None:
        """Called when a batch is about to be returned."""
        self._batches += 1
        if self._tuner.epoch is not self._token:
            return
        if self._batches <= _MEASURED or self._batches % 64 == 0:
            size = size_of_batch(batch)
            if size > self._largest:
                self._largest = size
                self._tuner.limit_depth_by_memory(size)
                self._apply_choice()
        if self._queue.ended:
            self._begin = None  # the threads run dry
        else:
            self._observe_window(now_ns, at_a_batch=True)

    def _observe_window(self, now_ns: int, *, at_a_batch: bool) -> None:
        if self._batches == 0 or self._tuner.epoch is not self._token:
            return  # everything starts, or a newer iterator of the loader is tuned
        if self._begin is None:
            since, batches = now_ns - self._changed_ns, self._batches - self._changed_batches
            in_flight = 1 + (self._in_force.depth if self._in_force is not None else 0)
            if since >= _SLOW_NS or (since >= _SETTLE_NS and batches >= in_flight and at_a_batch):
                self._open_window(now_ns, at_a_batch)
            return
        elapsed, batches = now_ns - self._begin.at_ns, self._batches - self._begin_batches
        enough = at_a_batch and batches >= _BATCHES
        if elapsed < (_WINDOW_NS if enough else _SLOW_NS):
            return
        end = self._pace.look(now_ns)
        if end is None:
            return
        made = _count_made(end) - _count_made(self._begin)
        if made < _SAMPLES and not enough:
            return
        seconds = elapsed / 1e9
        handed = batches / seconds if enough and self._at_a_batch else 0.0
        end_of = replace(end, batches=max(end.batches, self._begin.batches + 1))
        budget, choice = self._tuner.budget, self._tuner.choice
        setting = Setting(choice.threads, budget.cores, choice.depth, self._collating, decoder=self._engine.decoder)
        load = mean_load_between(self._begin, end_of, setting)
        waits = (self._waited_ns - self._begin_waited) / elapsed
        self._tuner.observe(Window(seconds, load, waits, made / seconds, handed))
        if self._tuner.choice != self._in_force:
            self._apply_choice()
        else:
            self._open_window(now_ns, at_a_batch, end)

    def _open_window(self, now_ns: int, at_a_batch: bool, mark: Mark | None = None) -> None:
        self._begin = mark or self._pace.look(now_ns)
        self._at_a_batch = at_a_batch
        self._begin_waited, self._begin_batches = self._waited_ns, self._batches

    def _apply_choice(self) -> None:
        """Puts the choice into force; a window in progress is dropped."""
        choice = self._tuner.choice
        if choice == self._in_force:
            return
        try:
            self._engine.resize(choice.threads)
        except RuntimeError:  # the system allows no more threads
            if self._in_force is None:
                raise
            self._tuner.refuse_more(self._in_force.threads)
            choice = self._tuner.choice
        self._queue.ahead = choice.depth
        self._in_force, self._begin = choice, None
        self._changed_ns, self._changed_batches = self._clock(), self._batches


def _count_made(mark: Mark) -> int:
    """Returns the samples that the threads have made: those through the Python steps, which are the last, if any."""
    return mark.seen.items.get("python") or mark.seen.items.get("read", 0)
