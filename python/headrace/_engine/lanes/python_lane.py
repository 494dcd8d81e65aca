"""Python threads that run the jobs which the pipeline cannot do natively."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from headrace._base.cores import bind_thread
from headrace._base.lifetimes.thread_settings import ThreadSettings
from headrace._base.lifetimes.threads import Serving
from headrace._base.lifetimes.weak_list import Living
from headrace._base.messages import printable
from headrace._base.native import core
from headrace._base.safe_exceptions import format_error, is_instance, set_traceback, traceback_of
from headrace._engine.counters.helper_work import HelperWork
from headrace._media.video.decoding_cost import DecodingCost

# Daemon threads must not be inside the core when the interpreter exits: it would end them in the middle of C++ code.
_live: Living[PythonLane] = Living()
_started: Living[Serving] = Living()  # threads may outlive their lane if it was closed without a join
_PATIENCE_S = 3600.0  # bounds one wait for a job; close() wakes waiting threads at once
_PARTING_S = 10.0  # time that a running job gets at interpreter exit; it may never end
_here = threading.local()  # the pipeline that this thread serves


class PythonLane:
    """Takes jobs from the pipeline and returns their results. Each subclass handles one kind of job.

    The first thread starts with the lane. A thread that finds more jobs waiting starts another, up to `threads`, and
    so does who waits for a batch: all threads may be at long jobs that they began before.
    One that finds more threads than are wanted ends after its job. With 0 threads none starts, and `run_waiting` runs
    jobs in the caller's thread. The threads have the settings of the one that made the lane.

    Attributes:
        cost: frames of videos that were decoded so far.
        sends_away: whether other machines do the jobs: the threads are none that make samples.
    """

    name = ""
    cost = DecodingCost()
    sends_away = False

    def __init__(self, pipeline: core.Pipeline, threads: int) -> None:
        self._pipeline = pipeline
        self._limit = threads
        self._settings = ThreadSettings.now()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waits = True
        self._threads: list[Serving] = []
        self._cores: frozenset[int] = frozenset()
        self._errors: dict[int, dict[int, BaseException]] = {}  # by batch id and sample
        if threads > 0:
            _live.add(self)
            self._start_thread()

    @staticmethod
    def _next_job(pipeline: core.Pipeline, seconds: float) -> core.PythonJob | None:
        raise NotImplementedError

    def _at_thread_end(self) -> Callable[[], object]:
        """Returns what a thread calls as its last; it must not refer to the lane."""
        return int

    def _jobs_waiting(self) -> int:
        """Returns the number of jobs that no thread has taken."""
        raise NotImplementedError

    def _run_job(self, job: core.PythonJob) -> None:
        raise NotImplementedError

    def _start_thread(self) -> None:
        with self._lock:
            if len(self._threads) >= self._limit or self._pipeline.closed:
                return
            # The thread holds no strong reference to the lane, or a dropped iterator would never be collected.
            how = _serve, self._pipeline, self._next_job, self._at_thread_end(), weakref.ref(self)
            thread = Serving(self._settings.run, how, f"headrace-{self.name}")
            self._threads.append(thread)
            _started.add(thread)
            if self._cores:
                _bind_to_cores(thread, self._cores)

    def _try_to_start_thread(self) -> None:
        try:
            self._start_thread()
        except RuntimeError:  # the system allows no more threads: continue with the present ones
            self._limit = len(self._threads)

    def start_needed_thread(self) -> None:
        """Starts a thread, if jobs wait and there may be more."""
        if len(self._threads) < self._limit and not self.sends_away and self._jobs_waiting() > 0:
            self._try_to_start_thread()

    def resize(self, threads: int) -> None:
        """Allows this many threads, 1 or more; those beyond end after their next job. Does nothing if the jobs run in
        the caller's thread."""
        if self._limit > 0:
            self._limit = threads

    def bind_threads(self, cores: Iterable[int]) -> None:
        """Makes the threads, also those of later, run on these cores only."""
        with self._lock:
            self._cores = frozenset(cores)
            for thread in self._threads:
                _bind_to_cores(thread, self._cores)

    def _leave_if_superfluous(self) -> bool:
        """Returns whether the calling thread has to end, because fewer are wanted; then it does not count any more."""
        with self._lock:
            if len(self._threads) <= self._limit:
                return False
            self._threads = [one for one in self._threads if one.ident != threading.get_ident()]
            return True

    @property
    def threads(self) -> int:
        """Maximum number of threads; 0: jobs run in the caller's thread."""
        return self._limit

    def work(self) -> Mapping[str, HelperWork]:
        """Returns what other machines have done so far, by their addresses."""
        return {}

    def thread_ids(self) -> list[int]:
        """Returns the threads that have started, as the operating system numbers them."""
        return [one.native_id for one in self._threads if one.native_id is not None]

    def run_waiting(self, seconds: float = 0.0) -> bool:
        """Runs one job in this thread, waiting for it up to `seconds`. Returns False if there is none.

        If the job raises, in particular an interrupt, it is put back and will run again.
        """
        job = None
        try:
            job = self._next_job(self._pipeline, seconds)  # a job that an interrupt drops here puts itself back
            if job is not None:
                self._run_job(job)
        except BaseException:
            if job is not None:
                self._pipeline.put_back(job)
            raise
        return job is not None

    def _fail(self, job: core.PythonJob, error: BaseException, reason: str) -> None:
        """Fails a job; its exception is raised in the caller's thread when the batch is due.

        One that is no Exception, such as that of ``sys.exit``, would end the program there: RuntimeError replaces it.
        """
        if not is_instance(error, Exception):
            trace, error = traceback_of(error), RuntimeError(f"it raised {format_error(error)}")
            set_traceback(error, trace)
        self._errors.setdefault(job.batch_id, {})[job.sample] = error
        self._pipeline.fail(job, printable(reason))

    def _serve(self, job: core.PythonJob) -> None:
        """Does a job in a thread of the lane, which must outlive it: without threads, no batch would be completed."""
        try:
            self._run_job(job)
        except BaseException as error:
            try:
                self._fail(job, error, format_error(error))
            except BaseException:
                with suppress(BaseException):  # a job that is neither done nor failed returns to its queue
                    self._pipeline.fail(job, "its exception cannot be kept")

    def take_errors(self, batch_id: int) -> dict[int, BaseException]:
        """Returns the exceptions that Python code raised for a batch, by sample, and forgets them."""
        return self._errors.pop(batch_id, {})

    @staticmethod
    def served_here() -> core.Pipeline | None:
        """Returns the pipeline that the calling thread serves; None if it is not a lane's thread."""
        return getattr(_here, "pipeline", None)

    def abandon_steps(self) -> None:
        """Makes `close` not wait for running jobs, which may never end."""
        self._waits = False

    def close(self) -> None:
        """Ends the threads; each first finishes its current job."""
        self._pipeline.close()
        if self._waits:
            self.join()

    def join(self, seconds: float | None = None) -> None:
        """Waits up to `seconds` for each thread to end."""
        # The threads do not exist in a forked child. Without threads nothing is looked up: where another module holds
        # __main__, as dill does, its objects are deleted when the globals of this module are gone.
        if self._threads and self._pid == os.getpid():
            for thread in list(self._threads):
                if thread.ident != threading.get_ident():
                    thread.join(seconds)


def _serve(
    pipeline: core.Pipeline,
    next_job: Callable[[core.Pipeline, float], core.PythonJob | None],
    at_end: Callable[[], object],
    lane_ref: weakref.ref[PythonLane],
) -> None:
    core.name_thread(threading.current_thread().name)
    _here.pipeline = pipeline
    try:
        _serve_until_closed(pipeline, next_job, lane_ref)
    finally:
        at_end()


def _serve_until_closed(
    pipeline: core.Pipeline,
    next_job: Callable[[core.Pipeline, float], core.PythonJob | None],
    lane_ref: weakref.ref[PythonLane],
) -> None:
    while not pipeline.closed:
        job = next_job(pipeline, _PATIENCE_S)
        if job is None:
            continue
        lane = lane_ref()
        if lane is None:
            return
        if lane._jobs_waiting() > 0:
            lane._try_to_start_thread()
        lane._serve(job)
        if lane._leave_if_superfluous():
            return
        del lane, job


def _bind_to_cores(thread: Serving, cores: frozenset[int]) -> None:
    if thread.native_id is not None:
        bind_thread(thread.native_id, cores)


@atexit.register
def _close_all() -> None:
    for lane in _live:
        lane.abandon_steps()
        lane.close()
    for thread in _started:
        thread.join(_PARTING_S)
