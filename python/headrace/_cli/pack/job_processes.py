"""Runs numbered jobs in forked processes that take their work themselves, and that end with their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from headrace._base.safe_exceptions import is_instance, message_of, named_message_of

#: Does one job; its second argument has to be called after each sample.
Work = Callable[[int, Callable[[], None]], None]

_POLL_S = 0.1
_GRACE_S = 20.0  # grace period to finish the current sample


class Stopped(BaseException):
    """The other processes have to stop, or the parent is gone. Not an Exception: no handler of a sample catches it."""


def run_in_processes(work: Work, jobs: Sequence[int], progress: Callable[[int], None], workers: int) -> None:
    """Does all jobs, each once.

    Args:
        work: does a job; it leaves nothing unfinished when it is interrupted by an exception.
        jobs: their numbers, taken in order.
        progress: called with the number of samples done since its last call.
        workers: number of processes; 1: this one.

    Raises:
        Exception: what `work` raised first; the other processes have stopped after their current sample.
        RuntimeError: a process was killed.
        KeyboardInterrupt: after all processes have stopped.
    """
    if min(workers, len(jobs)) <= 1:
        for job in jobs:
            work(job, lambda: progress(1))
        return
    _Crew(work, jobs, min(workers, len(jobs))).run(progress)


class _Crew:
    """The processes. They are forked: the source is theirs without being sent, as in torch's DataLoader."""

    def __init__(self, work: Work, jobs: Sequence[int], workers: int) -> None:
        self._work, self._jobs = work, jobs
        context = multiprocessing.get_context("fork")
        self._taken = context.Value("q", 0)  # jobs
        self._done = context.Array("q", workers, lock=False)  # samples, of each process: none waits for another
        self._stop = context.Value("b", 0, lock=False)
        self._parent = os.getpid()
        pipes = [context.Pipe(duplex=False) for _ in range(workers)]
        self._errors = [receiver for receiver, _ in pipes]
        self._processes = [
            context.Process(target=self._run_worker, args=(number, sender), daemon=True)
            for number, (_, sender) in enumerate(pipes)
        ]

    def run(self, progress: Callable[[int], None]) -> None:
        seen = 0
        try:
            for process in self._processes:
                process.start()
            while True:
                busy = [process for process in self._processes if process.is_alive()]
                done = sum(self._done)
                progress(done - seen)
                seen = done
                self._raise_first()
                if not busy:
                    return
                busy[0].join(_POLL_S)
        finally:
            self._stop.value = 1
            end = time.monotonic() + _GRACE_S
            for process in self._processes:
                if process.pid is not None:
                    process.join(max(0.0, end - time.monotonic()))
                    process.kill()  # nothing, if it has ended
                    process.join()

    def _raise_first(self) -> None:
        for process, errors in zip(self._processes, self._errors, strict=True):
            try:
                if errors.poll():
                    raise errors.recv()
            except (EOFError, ConnectionError):  # the process has ended
                pass
            if process.exitcode not in (None, 0):
                raise RuntimeError(
                    f"a process ended with status {process.exitcode}: it was killed, or it ran out of memory"
                )

    def _run_worker(self, number: int, errors: Connection[Exception, Exception]) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops all of them

        def tick() -> None:
            self._done[number] += 1
            if self._stop.value or os.getppid() != self._parent:
                raise Stopped

        try:
            while (job := self._next_job()) is not None:
                self._work(job, tick)
        except Stopped:
            return
        except Exception as error:
            errors.send(_make_picklable(error))

    def _next_job(self) -> int | None:
        with self._taken.get_lock():
            taken = self._taken.value
            self._taken.value += 1
        return self._jobs[taken] if taken < len(self._jobs) and not self._stop.value else None


def _make_picklable(error: Exception) -> Exception:
    """Returns an error without the objects that it may hold."""
    if isinstance(error, OSError) and type(error).__module__ == "builtins" and error.errno is not None:
        return OSError(error.errno, error.strerror, *([error.filename] if error.filename is not None else []))
    return ValueError(message_of(error)) if is_instance(error, ValueError) else RuntimeError(named_message_of(error))
