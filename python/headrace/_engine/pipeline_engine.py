"""An engine over one native pipeline and its Python lanes."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._engine.counters.counters import Counters
from headrace._engine.engine import Engine, Failure, Flight
from headrace._engine.lanes.call_lane import CallLane, RowMetadata
from headrace._engine.lanes.python_lane import PythonLane
from headrace._engine.lanes.worker_info import WorkerValues
from headrace._media.video.decoding_cost import DecodingCost

_STEP_S = 0.005  # interval at which the caller's thread polls for returned work
_LOOK_S = 0.1  # a batch that takes longer may wait for one slow job of a lane that needs more threads


class PipelineEngine(Engine):
    """The threads and slots of a native pipeline, and the threads in Python that it needs.

    Args:
        pipeline: makes the batches.
        lanes: run its jobs in Python; a lane without threads runs them in the caller's thread, inside `wait`.
        inline: whether the pipeline has no threads, and everything runs in the caller's thread, inside `wait`.
    """

    def __init__(self, pipeline: core.Pipeline, lanes: list[PythonLane], *, inline: bool) -> None:
        self._pipeline, self._lanes, self._inline = pipeline, lanes, inline
        self.at_end = pipeline.close  # which ends the threads, those of Python too
        self.endings = [pipeline.close]
        self._served_here = [lane for lane in lanes if lane.threads == 0]

    def add_lane(self, lane: PythonLane) -> None:
        """Adds threads that take samples of the pipeline."""
        self._lanes.append(lane)

    def set_metadata_reader(self, metadata: RowMetadata) -> None:
        for lane in self._lanes:
            if isinstance(lane, CallLane):
                lane.metadata = metadata

    def work_as(self, workers: WorkerValues) -> None:
        for lane in self._lanes:
            if isinstance(lane, CallLane) and lane.workers is None:
                lane.workers = workers

    def repair(
        self,
        flight: Flight,
        places: list[int],
        table: core.BlobTable,
        rows: npt.NDArray[np.int64],
        draws: npt.NDArray[np.float64],
    ) -> Flight:
        return Flight(self._pipeline.repair(flight.batch, places, table, rows, draws), flight.stream)

    def wait(self, flight: Flight, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self._served_here and not self._inline:
            left = deadline - time.monotonic()
            if self._pipeline.wait(flight.batch, max(0.0, min(left, _LOOK_S))):
                return True
            if left <= 0 or self._pipeline.closed or flight.batch.cancelled:
                return False
            for lane in self._lanes:
                lane.start_needed_thread()
        while True:
            # Finish a sample's Python steps before the next sample: steps may count calls, as in torch's main process.
            while any(lane.run_waiting() for lane in self._served_here) or (self._inline and self._pipeline.run_one()):
                pass
            # Other threads may still work, and may return a sample.
            left = deadline - time.monotonic()
            patience = max(0.0, min(_STEP_S, left))
            if not self._inline and not self._pipeline.wait(flight.batch, 0.0):
                self._served_here[-1].run_waiting(patience)  # wakes up when the next job arrives
                patience = 0.0
            if self._pipeline.wait(flight.batch, patience):
                return True
            if left <= 0 or self._pipeline.closed or flight.batch.cancelled:
                return False

    def failures(self, flight: Flight) -> list[Failure]:
        failures = flight.batch.take_failures()
        if not failures:
            return []
        originals = self._take_errors(flight)
        return [Failure(*one, originals.get(one[0])) for one in sorted(failures)]

    def cancel(self, flight: Flight) -> None:
        self._pipeline.cancel(flight.batch)
        self._take_errors(flight)

    def _take_errors(self, flight: Flight) -> dict[int, BaseException]:
        return {sample: error for lane in self._lanes for sample, error in lane.take_errors(flight.batch.id).items()}

    def counters(self) -> Counters:
        stages = {name: (items, ns) for name, items, ns in self._pipeline.stats()}
        durations, size = self._pipeline.durations(), self._pipeline.bytes_read
        python = tuple(one for lane in self._lanes if not lane.sends_away for one in lane.thread_ids())
        videos = sum((lane.cost for lane in self._lanes), DecodingCost())
        asleep, workers = self._pipeline.asleep, tuple(self._pipeline.thread_ids)
        helpers = {address: work for lane in self._lanes for address, work in lane.work().items()}
        return Counters(stages, durations, size, workers, python, asleep, videos, helpers)

    def resize(self, threads: int) -> None:
        self._pipeline.resize(threads)
        for lane in self._lanes:
            lane.resize(threads)

    def bind_threads(self, cores: Sequence[int]) -> None:
        self._pipeline.bind_threads(list(cores))
        for lane in self._lanes:
            lane.bind_threads(cores)

    @property
    def slots(self) -> int:
        return self._pipeline.slots

    @property
    def closed(self) -> bool:
        return self._pipeline.closed

    def serves_in_this_thread(self) -> bool:
        return PythonLane.served_here() is self._pipeline

    def abandon_steps(self) -> None:
        for lane in self._lanes:
            lane.abandon_steps()

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()
        self._pipeline.close()
