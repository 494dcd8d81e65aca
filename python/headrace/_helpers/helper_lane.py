"""Threads of a loader that have samples made by a helper."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from headrace._base import messages as texts
from headrace._base.native import core
from headrace._engine.image_engine import ImageEngine
from headrace._engine.lanes.python_lane import PythonLane
from headrace._helpers import messages
from headrace._helpers.connection import FAILURES, Address, Connection, RefusedError
from headrace._helpers.messages import Order, Terms
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.steps.recipe_text import as_bytes, write_recipe

_MOST_SAMPLES = 32  # of a request: its cost in Python is some 15 us a sample then
_SAMPLES_OF_A_THREAD = 4  # asked for at once for each of a helper's threads
_MOST_CONNECTIONS = 8
_ASK_S = 0.1  # how often a thread without work looks again
_WAIT_S = 5.0  # how long a helper may send nothing before its samples are made here
_RESTS_S = (0.1, 5.0)  # between two attempts to reach a helper: the first, and the longest


@dataclass
class Pace:
    """What the threads of one helper know together; its fields are written under the lock.

    Attributes:
        keep: number of queued samples that this machine's threads make before an answer could arrive.
        most: number of samples of a request.
        rest: seconds until the next attempt to reach the helper; 0: it works.
        until: when that is.
        refused: why the helper is not used; "": it is.
        samples, bytes, seconds, failures: of the requests so far.
    """

    keep: int
    most: int = 1
    rest: float = 0.0
    until: float = 0.0
    refused: str = ""
    samples: int = 0
    bytes: int = 0
    seconds: float = 0.0
    requests: int = 0
    failures: int = 0
    latency: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def failed(self) -> None:
        """Notes that the helper did not answer: the next attempt is later."""
        with self.lock:
            self.failures += 1
            self.rest = min(max(2 * self.rest, _RESTS_S[0]), _RESTS_S[1])
            self.until = time.monotonic() + self.rest

    def answered(self, samples: int, size: int, seconds: float) -> None:
        """Notes an answer."""
        with self.lock:
            self.rest = 0.0
            self.requests += 1
            self.samples += samples
            self.bytes += size
            self.seconds += seconds
            self.latency = seconds if self.requests == 1 else 0.8 * self.latency + 0.2 * seconds


def _next_job(pace: Pace, pipeline: core.Pipeline, seconds: float) -> core.HelperJob | None:
    """Waits for samples that the helper would finish earlier than the threads here."""
    while not pipeline.closed:
        wait = pace.until - time.monotonic() if pace.rest else 0.0
        if pace.refused or wait > 0:
            time.sleep(min(max(wait, _ASK_S), _ASK_S))
            continue
        job = core.next_helper_job(pipeline, pace.most, pace.keep, _ASK_S)
        if job is not None:
            return job
    return None


class HelperLane(PythonLane):
    """Sends samples of the pipeline to one helper, and stores what it answers.

    Args:
        engine: makes the same samples here.
        address: of the helper.
        threads: number of the engine's own threads.
    """

    name = "helper"

    def __init__(self, engine: ImageEngine, address: Address, threads: int) -> None:
        self.address = address
        self.pace = Pace(keep=2 * threads)
        self._threads_here = threads
        self._order, self._finished = order_of(engine)
        self._local = threading.local()
        self._connections: list[Connection] = []
        self._ended = False
        self._next_job = partial(_next_job, self.pace)  # type: ignore[method-assign,assignment]
        super().__init__(engine._pipeline, 1)

    def _jobs_waiting(self) -> int:
        return 1

    def resize(self, threads: int) -> None:
        self._threads_here = threads

    def _run_job(self, job: core.HelperJob) -> None:  # type: ignore[override]
        try:
            connection = self._connection()
            draws, (files, sizes) = job.draws, job.files()
            begin = time.monotonic()
            samples, made, opened = connection.make(self._order, [draws, sizes, files], messages.ANSWER_KINDS)
            seconds, count = time.monotonic() - begin, len(made)
            job.finish(samples, finished=self._finished, made=made, sizes=opened.reshape(-1))
        except RefusedError as error:
            job.put_back()
            self._refuse(str(error))
        except (*FAILURES, ValueError):
            job.put_back()
            self.pace.failed()
        else:
            self.pace.answered(count, samples.nbytes + files.nbytes, seconds)
            self._adapt()

    def _connection(self) -> Connection:
        """Returns the connection of this thread; the first asks for the helper's terms."""
        found: Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = Connection(self.address, _WAIT_S)
            self._connections.append(found)
            if self._ended:
                raise ConnectionAbortedError
            terms = found.terms()
            if why := Terms.of_this_machine().refusal_of(terms):
                raise RefusedError(f"helper {self.address} is not used: {why}")
            wanted = max(1, _SAMPLES_OF_A_THREAD * terms.threads)
            self.pace.most = min(_MOST_SAMPLES, max(1, wanted // 2))
            self._limit = min(_MOST_CONNECTIONS, max(2, -(-wanted // self.pace.most)))
            self._local.connection = found
        return found

    def _adapt(self) -> None:
        """Finds how many samples the threads here make until an answer arrives: only what is left beyond these is
        worth sending."""
        made = {name: (items, ns) for name, items, ns in self._pipeline.stats()}
        items, ns = made.get("decode", (0, 0))
        each = ns / items * 1e-9 if items else 0.0
        if each:
            self.pace.keep = max(self._threads_here, int(self.pace.latency / each * self._threads_here))

    def _refuse(self, why: str) -> None:
        with self.pace.lock:
            first, self.pace.refused = not self.pace.refused, why
        if first:
            texts.warn(why, RuntimeWarning)

    def close(self) -> None:
        self._ended = True
        for one in self._connections:
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


def add_helpers(engine: ImageEngine, addresses: tuple[Address, ...], threads: int) -> None:
    """Has helpers make what the threads of an engine would make later."""
    for address in addresses:
        engine._lanes.append(HelperLane(engine, address, threads))
