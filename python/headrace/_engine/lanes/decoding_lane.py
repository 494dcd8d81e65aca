"""Python threads that decode the files which the native pipeline does not decode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace._base.native import core
from headrace._engine.lanes.python_lane import PythonLane


class DecodingLane(PythonLane):
    """Takes files from the pipeline. Each subclass decodes them by other libraries.

    Args:
        pipeline, threads: as in `PythonLane`.
    """

    @staticmethod
    def _next_job(pipeline: core.Pipeline, seconds: float) -> core.PythonJob | None:
        return pipeline.next_pillow_job(seconds)

    def _jobs_waiting(self) -> int:
        return self._pipeline.pillow_jobs_waiting


@dataclass(frozen=True)
class Decoding:
    """How the files of a pipeline are decoded that it does not decode itself.

    Attributes:
        stage: its name in the pipeline's counters: "pillow" or "video".
        make_lane: returns the threads: pipeline, number of threads.
    """

    stage: str
    make_lane: Callable[[core.Pipeline, int], DecodingLane]
