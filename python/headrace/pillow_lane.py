"""Python threads in which Pillow decodes what the native decoder leaves to it."""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
import weakref

from headrace._native import core
from headrace.pillow_ops import open_rgb

# Daemon threads must not be inside the core when the interpreter goes down: it would end them in the middle of C++.
_live: weakref.WeakSet[PillowLane] = weakref.WeakSet()
_STREAM = re.compile(r" ?<_io\.BytesIO object at 0x[0-9a-f]+>")
_PATIENCE_S = 3600.0  # close() wakes a waiting thread; this only bounds one call


class PillowLane:
    """Takes samples from the pipeline, decodes them with Pillow and gives the pixels back.

    The first thread starts with the lane; each that finds more work waiting starts the next, up to `threads`.
    With 0 threads nothing starts, and `run_waiting` does the work in the caller's thread.

    What Pillow warns of is warned of in the thread that decodes, by Python's own rules: the filters of the whole
    process decide, and where they make a warning an error (``-W error``), it is the sample's error.

    """

    def __init__(self, pipeline: core.Pipeline, threads: int) -> None:
        self._pipeline = pipeline
        self._limit = threads
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._errors: dict[int, dict[int, BaseException]] = {}  # by batch id and sample
        if threads > 0:
            _live.add(self)
            self._start_one()

    def _start_one(self) -> None:
        with self._lock:
            if len(self._threads) >= self._limit or self._pipeline.closed:
                return
            # The thread must not keep the lane alive, or a dropped iterator would never be collected.
            thread = threading.Thread(
                target=_serve, args=(self._pipeline, weakref.ref(self)), name="headrace-pillow", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def _start_another(self) -> None:
        try:
            self._start_one()
        except RuntimeError:  # no more threads to be had: those there are do the work
            self._limit = len(self._threads)

    def run_waiting(self) -> bool:
        """Does one waiting sample in this thread; False when there is none."""
        job = self._pipeline.next_pillow_job(0.0)
        if job is None:
            return False
        self._do(job)
        return True

    def _do(self, job: core.PillowJob) -> None:
        begin = time.perf_counter_ns()
        try:
            image = open_rgb(job.data)
            pixels = image.tobytes("raw", "RGBX")
        except Exception as error:  # the verdict of Pillow: raised in the main thread when the batch is due
            self._errors.setdefault(job.batch_id, {})[job.sample] = _without_frames(error)
            self._pipeline.fail(job, _in_words(error))
        else:
            self._pipeline.finish(job, pixels, image.width, image.height, time.perf_counter_ns() - begin)

    def take_errors(self, batch_id: int) -> dict[int, BaseException]:
        """The exceptions that Pillow raised for samples of a batch, once."""
        return self._errors.pop(batch_id, {})

    def close(self) -> None:
        """Ends the threads; waits for the image that each has in hand."""
        self._pipeline.close()
        if self._pid == os.getpid():  # in a forked child they do not exist
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join()


def _in_words(error: BaseException) -> str:
    # Pillow names the stream it read from, which here is memory: the path stands in front of the reason anyway.
    return _STREAM.sub("", str(error)) or type(error).__name__


def _without_frames(error: BaseException) -> BaseException:
    """The error and its causes without tracebacks, whose frames hold the image, its bytes and this lane."""
    one: BaseException | None = error
    while one is not None:
        one.__traceback__ = None
        one = one.__cause__ or one.__context__
    return error


def _serve(pipeline: core.Pipeline, lane_ref: weakref.ref[PillowLane]) -> None:
    while not pipeline.closed:
        job = pipeline.next_pillow_job(_PATIENCE_S)
        if job is None:
            continue
        lane = lane_ref()
        if lane is None:
            return
        if pipeline.pillow_jobs_waiting > 0:
            lane._start_another()
        lane._do(job)
        del lane, job


@atexit.register
def _close_all() -> None:
    for lane in list(_live):
        lane.close()
