"""Python threads in which Pillow decodes what the native decoder leaves to it."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref

from headrace._native import core
from headrace.sources.dataset import open_rgb

# Daemon threads must not be inside the core when the interpreter goes down: it would end them in the middle of C++.
_live: weakref.WeakSet[PillowLane] = weakref.WeakSet()
_PATIENCE_S = 3600.0  # close() wakes a waiting thread; this only bounds one call


class PillowLane:
    """Takes samples from the pipeline, decodes them with Pillow and gives the pixels back.

    The first thread starts with the lane; each that finds more work waiting starts the next, up to `threads`.
    With 0 threads nothing starts, and `run_waiting` does the work in the caller's thread.
    """

    def __init__(self, pipeline: core.Pipeline, threads: int) -> None:
        self._pipeline = pipeline
        self._limit = threads
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._errors: dict[tuple[int, int], BaseException] = {}
        if threads > 0:
            _live.add(self)
            self._start_one()

    def _start_one(self) -> None:
        with self._lock:
            if len(self._threads) >= self._limit:
                return
            # The thread must not keep the lane alive, or a dropped iterator would never be collected.
            thread = threading.Thread(
                target=_serve, args=(self._pipeline, weakref.ref(self)), name="headrace-pillow", daemon=True
            )
            self._threads.append(thread)
        thread.start()

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
            self._errors[job.batch_id, job.sample] = error
            self._pipeline.fail(job, str(error) or type(error).__name__)
        else:
            self._pipeline.finish(job, pixels, image.width, image.height, time.perf_counter_ns() - begin)

    def error_of(self, batch: core.Batch, sample: int) -> BaseException | None:
        """The exception that Pillow raised for a sample, once; None if another stage failed."""
        return self._errors.pop((batch.id, sample), None)

    def close(self) -> None:
        """Ends the threads; waits for the image that each has in hand."""
        self._pipeline.close()
        if self._pid == os.getpid():  # in a forked child they do not exist
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join()


def _serve(pipeline: core.Pipeline, lane_ref: weakref.ref[PillowLane]) -> None:
    while not pipeline.closed:
        job = pipeline.next_pillow_job(_PATIENCE_S)
        if job is None:
            continue
        lane = lane_ref()
        if lane is None:
            return
        if pipeline.pillow_jobs_waiting > 0:
            lane._start_one()
        lane._do(job)
        del lane, job


@atexit.register
def _close_all() -> None:
    for lane in list(_live):
        lane.close()
