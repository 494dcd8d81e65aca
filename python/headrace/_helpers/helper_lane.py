"""Threads of a loader that have samples made by a helper."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from headrace._base import messages as texts
from headrace._base.lifetimes.threads import Serving
from headrace._base.native import core
from headrace._engine.counters.helper_work import HelperWork
from headrace._engine.image_engine import ImageEngine
from headrace._engine.lanes.python_lane import PythonLane
from headrace._helpers.connection import FAILURES, Address, Connection, RefusedError
from headrace._helpers.messages import Terms
from headrace._helpers.requests import Requests

_SAMPLES = (16, 32)  # of a request, at least and at most: its cost in Python is divided by them
_SAMPLES_OF_A_THREAD = 4  # in flight for each of a helper's threads
_MOST_CONNECTIONS = 8
_ASK_S = 0.1  # how often a thread without work looks again
_WAIT_S = 5.0  # how long a request may take before its samples are made here
_WATCH_S = 0.5  # how often that is looked at
_FORGET_S = 5.0  # without an answer, after which half as many samples are kept from a helper: it may be faster now
_RESTS_S = (0.1, 5.0)  # between two attempts to reach a helper: the first, and the longest
_SILENCE_S = 30.0  # without an answer, after which a warning says so
_REFUSALS = 3  # in a row, after which a helper is not asked again: a damaged message may look like one
_STAGES = ("read", "header", "decode", "resize")


@dataclass(eq=False)
class _Pace:
    """What the threads of one helper know together; its numbers are written under the lock.

    Attributes:
        address: of the helper.
        keep: number of queued samples that the threads here make before an answer could arrive.
        most, wanted: number of samples of a request, and what it may grow to.
        threads: number of connections that are of use.
        rest, until: seconds between two attempts to reach the helper, and when the next one is; 0: it works.
        latency: seconds that the next request is expected to take: those of requests, the newest ones with the most
            weight; while requests grow, those of the last one, doubled where the next one is larger.
        answered_at: when the newest answer came, or the connection was opened.
        silent_since: when it last answered, or was first asked.
        refusals: in a row.
        differs: whether the helper has other bytes of a file of the dataset: all are sent from then on.
        work: what it has done.
        ended: set when the lane is closed.
    """

    address: Address
    keep: int
    most: int = 1
    wanted: int = 1
    threads: int = 1
    rest: float = 0.0
    until: float = 0.0
    latency: float = 0.0
    answered_at: float = 0.0
    silent_since: float = 0.0
    warned: bool = False
    refusals: int = 0
    differs: bool = False
    work: HelperWork = field(default_factory=HelperWork)
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    local: threading.local = field(default_factory=threading.local)
    connections: list[Connection] = field(default_factory=list)

    @property
    def reads(self) -> bool:
        """Whether the helper reads the files itself."""
        return self.work.reads and not self.differs

    def drop_connection(self) -> None:
        """Closes the connection of this thread: what answers next may be another program."""
        found: Connection | None = vars(self.local).pop("connection", None)
        if found is not None:
            found.close()
            with suppress(ValueError):
                self.connections.remove(found)

    def failed(self, error: Exception, *, refused: bool = False) -> None:
        """Notes that the helper did not answer: the next attempt is later, and smaller. What several threads find at
        once counts once."""
        self.drop_connection()
        why, now = str(error) or type(error).__name__, time.monotonic()
        with self.lock:
            self.work = replace(self.work, failures=self.work.failures + 1, trouble=why)
            self.most = 1
            if now < self.until:
                return
            self.rest = min(max(2 * self.rest, _RESTS_S[0]), _RESTS_S[1])
            self.until = now + self.rest
            self.refusals = self.refusals + 1 if refused else 0
            if final := self.refusals >= _REFUSALS and not self.work.refused:
                self.work = replace(self.work, refused=why)
            self.silent_since = self.silent_since or now
            silent = now - self.silent_since > _SILENCE_S and not self.warned and not final
            self.warned = self.warned or silent
        if final:
            texts.warn(f"helper {self.address} is not used: {why}; its samples are made here", RuntimeWarning)
        elif silent:
            texts.warn(
                f"helper {self.address} has not answered for {_SILENCE_S:.0f} s: {why}; its samples are made here, and "
                "it is asked again",
                RuntimeWarning,
            )

    def request(self) -> tuple[int, int]:
        """Returns how many samples are asked for at most, and how many are kept. A helper that was too slow to be asked
        is asked for one sample after a while."""
        with self.lock:
            halvings = int((time.monotonic() - self.answered_at) / _FORGET_S)
            return (1, self.keep >> halvings) if halvings else (self.most, self.keep)

    def answered(self, asked: int, samples: int, size: int, seconds: float) -> None:
        """Notes an answer: how many samples were asked for and made, bytes there and back, and the time."""
        now = time.monotonic()
        with self.lock:
            self.rest, self.silent_since, self.refusals = 0.0, 0.0, 0
            after_a_while = now - self.answered_at - seconds > _FORGET_S
            grows = after_a_while or self.most < self.wanted
            if after_a_while:
                self.most = min(2, self.wanted)
            elif asked >= self.most:  # not one that was sent before requests grew, or for which little was left
                self.most = min(2 * self.most, self.wanted)
            if grows:
                self.latency = seconds * min(2.0, max(1.0, self.most / asked))
            else:
                self.latency = 0.8 * self.latency + 0.2 * seconds if self.work.requests else seconds
            self.answered_at = now
            self.work = replace(
                self.work,
                samples=self.work.samples + samples,
                bytes=self.work.bytes + size,
                requests=self.work.requests + 1,
                seconds=self.work.seconds + seconds,
                trouble="",
            )


class _Meeting:
    """Opens connections to a helper, and finds out whether it makes what is made here."""

    def __init__(self, pace: _Pace, requests: Requests, seconds: float) -> None:
        self._pace, self.requests, self.patience = pace, requests, seconds

    @property
    def dataset(self) -> str:
        """The fingerprint of the dataset, if the helper reads it; "" otherwise."""
        return self.requests.fingerprint if self._pace.reads else ""

    def connection(self) -> Connection:
        """Returns the connection of this thread. A new one asks for the helper's terms, and for samples that are known
        here.

        Raises:
            RefusedError: the helper is not to be used.
        """
        found: Connection | None = getattr(self._pace.local, "connection", None)
        if found is not None:
            return found
        found = self._pace.local.connection = Connection(self._pace.address, self.patience)
        self._pace.connections.append(found)
        terms, asked = found.terms(), self.requests
        if why := Terms.of_this_machine().refusal_of(terms):
            raise RefusedError(why)
        if not asked.is_equal_to_helper(found):
            raise RefusedError("it makes other pixels of a probe than this machine")
        in_flight = max(2 * _SAMPLES[0], _SAMPLES_OF_A_THREAD * terms.threads)
        known = terms.dataset == asked.fingerprint != ""
        reads = known and not self._pace.differs and asked.has_files(found)
        with self._pace.lock:
            reads = reads and not self._pace.differs  # another connection may have found it meanwhile
            self._pace.work = replace(self._pace.work, version=terms.version, reads=reads)
            self._pace.wanted = wanted = min(_SAMPLES[1], in_flight // 2)
            self._pace.threads = min(_MOST_CONNECTIONS, -(-in_flight // wanted))
            self._pace.most = self._pace.most if self._pace.rest else wanted
            self._pace.answered_at = time.monotonic()
        return found

    def check_one(self, connection: Connection, rows: npt.NDArray[np.int64]) -> None:
        """Compares the bytes of one of the files that the helper has read, now and then."""
        if not self.requests.has_one_file(connection, rows):
            with self._pace.lock:
                self._pace.differs, self._pace.work = True, replace(self._pace.work, reads=False)
            texts.warn(
                f"helper {self._pace.address} has other bytes of a file of the dataset than this machine: from now on "
                "files are sent; samples that it made before may be of its file",
                RuntimeWarning,
            )


def _next_job(pace: _Pace, meeting: _Meeting, pipeline: core.Pipeline, seconds: float) -> core.HelperJob | None:
    """Waits for samples that the helper would finish earlier than the threads here. None waits for a connection."""
    while not pipeline.closed and not pace.ended.is_set():
        rest = pace.until - time.monotonic() if pace.rest else 0.0
        if pace.work.refused or rest > 0:
            pace.ended.wait(_ASK_S if pace.work.refused else min(rest, _ASK_S))
            continue
        try:
            meeting.connection()
        except RefusedError as error:
            pace.failed(error, refused=True)
            continue
        except (*FAILURES, ValueError) as error:
            pace.failed(error)
            continue
        job = core.next_helper_job(pipeline, *pace.request(), _ASK_S)
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
        requests: what is asked for.
        timeout: seconds that the loader waits for a batch; 0: without a limit.
    """

    name = "helper"
    sends_away = True

    def __init__(
        self,
        engine: ImageEngine,
        address: Address,
        threads: int,
        requests: Requests,
        timeout: float = 0.0,
    ) -> None:
        self._pace = _Pace(address, keep=2 * threads)
        self._threads_here = threads
        seconds = min(_WAIT_S, timeout / 2) if timeout else _WAIT_S
        self._meeting = _Meeting(self._pace, requests, seconds)
        self._next_job = partial(_next_job, self._pace, self._meeting)  # type: ignore[method-assign,assignment]
        super().__init__(engine._pipeline, _MOST_CONNECTIONS)
        Serving(_watch, (self._pace, engine._pipeline), "headrace-watch")

    def work(self) -> dict[str, HelperWork]:
        return {str(self._pace.address): self._pace.work}

    def _at_thread_end(self) -> Callable[[], object]:
        return self._pace.drop_connection

    def _jobs_waiting(self) -> int:
        """Returns 1 while more connections are of use: each opens the next one."""
        return int(len(self._threads) < self._pace.threads)

    def resize(self, threads: int) -> None:
        self._threads_here = threads

    def _run_job(self, job: core.HelperJob) -> None:  # type: ignore[override]
        try:
            meeting, reads, asked = self._meeting, self._pace.reads, self._meeting.requests
            connection, rows, request = meeting.connection(), job.rows, asked.arrays_of(job, reads=reads)
            if request is None:
                return job.put_back()
            path, sent = request
            begin = time.monotonic()
            samples, made, opened = connection.make(path, asked.order, sent, meeting.dataset)
            seconds = time.monotonic() - begin
            job.finish(samples.data, finished=asked.finished, made=made, sizes=opened.reshape(-1))
            if reads:
                meeting.check_one(connection, rows)
        except Exception as error:  # whatever it is, the samples are made here
            job.put_back()
            self._pace.failed(error, refused=isinstance(error, RefusedError))
        else:
            size = samples.nbytes + sum(one.nbytes for one in sent)
            self._pace.answered(len(rows), int(np.count_nonzero(made)), size, seconds)
            self._pace.keep = self._samples_made_here(self._pace.latency)

    def _samples_made_here(self, seconds: float) -> int:
        """Returns how many samples the threads here make in this time: to send one of them would not be faster."""
        counted = {name: (items, ns) for name, items, ns in self._pipeline.stats() if name in _STAGES}
        each = sum(ns / items for items, ns in counted.values() if items)
        made = int(seconds * 1e9 / each * self._threads_here) if each else 0
        return max(self._threads_here, made)

    def close(self) -> None:
        if self._pid == os.getpid():  # a forked child has the sockets of this process
            self._pace.ended.set()
            for one in list(self._pace.connections):
                one.abort()
        super().close()


def add_helpers(
    engine: ImageEngine, addresses: Sequence[Address], threads: int, requests: Requests, timeout: float
) -> None:
    """Has helpers make what the threads of an engine would make last.

    Args:
        threads, requests, timeout: see `HelperLane`.
    """
    for address in addresses:
        engine.add_lane(HelperLane(engine, address, threads, requests, timeout))
