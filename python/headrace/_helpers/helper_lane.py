"""Threads of a loader that have samples made by a helper."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from headrace._base import messages as texts
from headrace._base.lifetimes.threads import Serving
from headrace._base.native import core
from headrace._engine.counters.helper_work import HelperWork
from headrace._engine.image_engine import ImageEngine
from headrace._engine.lanes.python_lane import PythonLane
from headrace._helpers import messages
from headrace._helpers.connection import FAILURES, Address, Connection, RefusedError
from headrace._helpers.messages import Array, Order, Terms
from headrace._helpers.order_engine import are_equal, checksums_of, probe_of
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.steps.recipe_text import write_recipe
from headrace.datasets.sources import BlobDataset

_SAMPLES = (16, 32)  # of a request, at least and at most: its cost in Python is divided by them
_SAMPLES_OF_A_THREAD = 4  # in flight for each of a helper's threads
_MOST_CONNECTIONS = 8
_ASK_S = 0.1  # how often a thread without work looks again
_WAIT_S = 5.0  # how long a request may take before its samples are made here
_WATCH_S = 0.5  # how often that is looked at
_RESTS_S = (0.1, 5.0)  # between two attempts to reach a helper: the first, and the longest
_REFUSALS = 3  # in a row, after which a helper is not asked again: a damaged message may look like one
_COMPARED = 8  # files of which both sides have the same bytes, before the helper reads them itself
_STAGES = ("read", "header", "decode", "resize")


@dataclass(eq=False)
class _Pace:
    """What the threads of one helper know together; its numbers are written under the lock.

    Attributes:
        keep: number of queued samples that the threads here make before an answer could arrive.
        most: number of samples of a request.
        rest, until: seconds between two attempts to reach the helper, and when the next one is; 0: it works.
        latency: seconds of a request, the newest ones with the most weight.
        refusals: in a row.
        reads: whether the helper reads the files itself.
        ended: set when the lane is closed.
    """

    keep: int
    most: int = 1
    rest: float = 0.0
    until: float = 0.0
    latency: float = 0.0
    refusals: int = 0
    reads: bool = False
    samples: int = 0
    bytes: int = 0
    requests: int = 0
    seconds: float = 0.0
    failures: int = 0
    version: str = ""
    refused: str = ""
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    local: threading.local = field(default_factory=threading.local)
    connections: list[Connection] = field(default_factory=list)

    def drop_connection(self) -> None:
        """Closes the connection of this thread: what answers next may be another program."""
        found: Connection | None = vars(self.local).pop("connection", None)
        if found is not None:
            found.close()
            with suppress(ValueError):
                self.connections.remove(found)

    def failed(self) -> None:
        """Notes that the helper did not answer: the next attempt is later."""
        with self.lock:
            self.failures += 1
            self.rest = min(max(2 * self.rest, _RESTS_S[0]), _RESTS_S[1])
            self.until = time.monotonic() + self.rest

    def was_refused(self, why: str) -> bool:
        """Notes a refusal, and returns whether the helper is given up now."""
        self.failed()
        with self.lock:
            self.refusals += 1
            final = self.refusals >= _REFUSALS and not self.refused
            if final:
                self.refused = why
            return final

    def answered(self, samples: int, size: int, seconds: float) -> None:
        """Notes an answer."""
        with self.lock:
            self.rest, self.refusals = 0.0, 0
            self.latency = 0.8 * self.latency + 0.2 * seconds if self.requests else seconds
            self.requests += 1
            self.samples += samples
            self.bytes += size
            self.seconds += seconds

    def work(self) -> HelperWork:
        """Returns what the helper has done."""
        with self.lock:
            return HelperWork(
                self.samples, self.bytes, self.requests, self.seconds, self.failures, self.version, self.refused
            )


def _next_job(pace: _Pace, pipeline: core.Pipeline, seconds: float) -> core.HelperJob | None:
    """Waits for samples that the helper would finish earlier than the threads here."""
    while not pipeline.closed and not pace.ended.is_set():
        rest = pace.until - time.monotonic() if pace.rest else 0.0
        if pace.refused or rest > 0:
            pace.ended.wait(_ASK_S if pace.refused else min(rest, _ASK_S))
            continue
        job = core.next_helper_job(pipeline, pace.most, pace.keep, _ASK_S)
        if job is not None:
            return job
    return None


def _watch(pace: _Pace, pipeline: core.Pipeline) -> None:
    """Ends requests that take too long."""
    while not pipeline.closed and not pace.ended.wait(_WATCH_S):
        for one in list(pace.connections):
            one.abort_if_overdue()


class HelperLane(PythonLane):
    """Sends samples of the pipeline to one helper, and stores what it answers.

    Args:
        engine: makes the same samples here.
        address: of the helper.
        threads: number of the engine's own threads.
        source: the dataset, whose rows the engine is given.
        order, finished: see `order_of`.
    """

    name = "helper"

    def __init__(
        self, engine: ImageEngine, address: Address, threads: int, source: BlobDataset, order: bytes, finished: bool
    ) -> None:
        self.address = address
        self._pace = _Pace(keep=2 * threads)
        self._threads_here = threads
        self._order, self._finished = order, finished
        self._source, self._fingerprint = source, source.fingerprint()
        self._columns = engine.recipe.columns
        self._next_job = partial(_next_job, self._pace)  # type: ignore[method-assign,assignment]
        super().__init__(engine._pipeline, 1)
        Serving(_watch, (self._pace, engine._pipeline), "headrace-watch")

    def work(self) -> dict[str, HelperWork]:
        return {str(self.address): self._pace.work()}

    def _at_thread_end(self) -> Callable[[], object]:
        return self._pace.drop_connection

    def _jobs_waiting(self) -> int:
        return 1  # the first connection opens the others

    def resize(self, threads: int) -> None:
        self._threads_here = threads

    def _run_job(self, job: core.HelperJob) -> None:  # type: ignore[override]
        try:
            connection = self._connection()
            path = messages.ROWS_PATH if self._pace.reads else messages.SAMPLES_PATH
            sent: list[Array] = [job.draws]
            sent += [job.rows] if self._pace.reads else reversed(job.files())
            begin = time.monotonic()
            samples, made, opened = connection.make(path, self._order, sent, self._fingerprint)
            seconds = time.monotonic() - begin
            job.finish(memoryview(samples), finished=self._finished, made=made, sizes=opened.reshape(-1))
        except RefusedError as error:
            job.put_back()
            self._pace.drop_connection()
            if self._pace.was_refused(str(error)):
                texts.warn(f"{error}; its samples are made here", RuntimeWarning)
        except (*FAILURES, ValueError):
            job.put_back()
            self._pace.drop_connection()
            self._pace.failed()
        else:
            self._pace.answered(int(made.sum()), samples.nbytes + sum(one.nbytes for one in sent), seconds)
            self._pace.keep = self._samples_made_here(self._pace.latency)

    def _connection(self) -> Connection:
        """Returns the connection of this thread. A new one asks for the helper's terms, and for samples that are known
        here."""
        found: Connection | None = getattr(self._pace.local, "connection", None)
        if found is not None:
            return found
        found = Connection(self.address, _WAIT_S)
        self._pace.connections.append(found)
        if self._pace.ended.is_set():
            raise ConnectionAbortedError
        self._pace.local.connection = found
        terms = found.terms()
        why = Terms.of_this_machine().refusal_of(terms)
        request, truth = probe_of(self._order, self._columns)
        if not why and not are_equal(found.make(messages.SAMPLES_PATH, self._order, request), truth):
            why = "it makes other pixels of a probe than this machine"
        if why:
            raise RefusedError(f"helper {self.address} is not used: {why}")
        in_flight = max(2 * _SAMPLES[0], _SAMPLES_OF_A_THREAD * terms.threads)
        self._pace.reads = self._has_dataset(found, terms)
        with self._pace.lock:
            self._pace.version = terms.version
            self._pace.most = min(_SAMPLES[1], in_flight // 2)
        self._limit = min(_MOST_CONNECTIONS, -(-in_flight // self._pace.most))
        return found

    def _has_dataset(self, connection: Connection, terms: Terms) -> bool:
        """Returns whether the helper has the loader's dataset: its fingerprint, and the bytes of some files."""
        if terms.dataset != self._fingerprint:
            return False
        rows = np.unique(np.linspace(0, len(self._source) - 1, _COMPARED).astype(np.int64))
        its = connection.make(messages.FILES_PATH, self._order, [rows], self._fingerprint)
        return are_equal(its, [checksums_of(self._source, rows)])

    def _samples_made_here(self, seconds: float) -> int:
        """Returns how many samples the threads here make in this time: to send one of them would not be faster."""
        counted = {name: (items, ns) for name, items, ns in self._pipeline.stats() if name in _STAGES}
        each = sum(ns / items for items, ns in counted.values() if items)
        made = int(seconds * 1e9 / each * self._threads_here) if each else 0
        return max(self._threads_here, made)

    def close(self) -> None:
        self._pace.ended.set()
        if self._pid == os.getpid():  # a forked child has the sockets of this process
            for one in list(self._pace.connections):
                one.abort()
        super().close()


def order_of(engine: ImageEngine) -> tuple[bytes, bool]:
    """Returns how another machine makes an engine's samples, and whether it finishes them.

    Raises:
        NotText: it cannot.
    """
    text = write_recipe(engine.recipe)
    order = Order(text.text, engine._layout.value, text.finished, engine.max_pixels, pillow_rule.pass_order())
    return order.to_json(), text.finished


def add_helpers(engine: ImageEngine, addresses: Sequence[Address], threads: int, source: BlobDataset) -> None:
    """Has helpers make what the threads of an engine would make last.

    Raises:
        NotText: they cannot.
    """
    order, finished = order_of(engine)
    for address in addresses:
        engine.add_lane(HelperLane(engine, address, threads, source, order, finished))
