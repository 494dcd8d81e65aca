"""Python threads that work on what the pipeline leaves to them."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable

from headrace.base.native import core

# Daemon threads must not be inside the core when the interpreter goes down: it would end them in the middle of C++.
_live: weakref.WeakSet[PythonLane] = weakref.WeakSet()
_started: weakref.WeakSet[threading.Thread] = (
    weakref.WeakSet()
)  # they may outlive their lane, if nobody waited for them
_PATIENCE_S = 3600.0  # close() wakes a waiting thread; this only bounds one call
_PARTING_S = 10.0  # for a job in hand when the interpreter goes down; it may never end
_here = threading.local()  # whose thread this is


class PythonLane:
    """Takes jobs from the pipeline, one kind a subclass, and gives what they made back.

    The first thread starts with the lane; each that finds more work waiting starts the next, up to `threads`.
    With 0 threads nothing starts, and `run_waiting` does the work in the caller's thread.
    """

    name = ""

    def __init__(self, pipeline: core.Pipeline, threads: int) -> None:
        self._pipeline = pipeline
        self._limit = threads
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waits = True
        self._threads: list[threading.Thread] = []
        self._errors: dict[int, dict[int, BaseException]] = {}  # by batch id and sample
        if threads > 0:
            _live.add(self)
            self._start_one()

    @staticmethod
    def _next_job(pipeline: core.Pipeline, seconds: float) -> core.PythonJob | None:
        raise NotImplementedError

    def _waiting(self) -> int:
        raise NotImplementedError

    def _do(self, job: core.PythonJob) -> None:
        raise NotImplementedError

    def _start_one(self) -> None:
        with self._lock:
            if len(self._threads) >= self._limit or self._pipeline.closed:
                return
            # The thread must not keep the lane alive, or a dropped iterator would never be collected.
            thread = threading.Thread(
                target=_serve,
                args=(self._pipeline, self._next_job, weakref.ref(self)),
                name=f"headrace-{self.name}",
                daemon=True,
            )
            thread.start()
            self._threads.append(thread)
            _started.add(thread)

    def _start_another(self) -> None:
        try:
            self._start_one()
        except RuntimeError:  # no more threads to be had: those there are do the work
            self._limit = len(self._threads)

    @property
    def threads(self) -> int:
        """Threads that it may have; 0: the caller does the work."""
        return self._limit

    def run_waiting(self, seconds: float = 0.0) -> bool:
        """Does one job in this thread, waiting for it up to `seconds`; False when there is none.

        What it raises, an interrupt above all, leaves the job to be done again.
        """
        job = None
        try:
            job = self._next_job(self._pipeline, seconds)  # one that is dropped here goes back by itself
            if job is not None:
                self._do(job)
        except BaseException:
            if job is not None:
                self._pipeline.put_back(job)
            raise
        return job is not None

    def note(self, job: core.PythonJob, error: BaseException) -> None:
        """Keeps an exception, to be raised in the main thread when the batch is due."""
        self._errors.setdefault(job.batch_id, {})[job.sample] = error

    def take_errors(self, batch_id: int) -> dict[int, BaseException]:
        """The exceptions that Python raised for samples of a batch, once."""
        return self._errors.pop(batch_id, {})

    @staticmethod
    def served_here() -> core.Pipeline | None:
        """Whose job this thread does; None: it is no lane's."""
        return getattr(_here, "pipeline", None)

    def wait_for_no_step(self) -> None:
        """From now on `close` waits for no job in hand: one may never end."""
        self._waits = False

    def close(self) -> None:
        """Ends the threads, after the job that each has in hand."""
        self._pipeline.close()
        if self._waits:
            self.join()

    def join(self, seconds: float | None = None) -> None:
        """Waits for each thread to end, up to `seconds`."""
        if self._pid == os.getpid():  # in a forked child they do not exist
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join(seconds)


def _serve(
    pipeline: core.Pipeline,
    next_job: Callable[[core.Pipeline, float], core.PythonJob | None],
    lane_ref: weakref.ref[PythonLane],
) -> None:
    core.name_thread(threading.current_thread().name)
    _here.pipeline = pipeline
    while not pipeline.closed:
        job = next_job(pipeline, _PATIENCE_S)
        if job is None:
            continue
        lane = lane_ref()
        if lane is None:
            return
        if lane._waiting() > 0:
            lane._start_another()
        lane._do(job)
        del lane, job


@atexit.register
def _close_all() -> None:
    for lane in list(_live):
        lane.wait_for_no_step()
        lane.close()
    for thread in list(_started):
        thread.join(_PARTING_S)
