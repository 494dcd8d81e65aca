"""Python threads that run the transforms without a native implementation."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch

from headrace._base.native import core
from headrace._base.safe_exceptions import format_error, message_of, set_traceback, traceback_of
from headrace._engine.lanes.python_lane import PythonLane
from headrace._engine.lanes.worker_info import WorkerValues, as_worker
from headrace._lowering.python_steps.step_copies import copy_function
from headrace._recipe.draws.python_randomness import sample_randomness
from headrace._recipe.draws.transform_reseeding import without_reseeding
from headrace._recipe.images.file_image import Metadata
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.calls import CallFunction
from headrace._recipe.steps.steps import Call

#: Returns Pillow's ``info`` for the file of the sample with this row.
RowMetadata = Callable[[int], dict[Any, Any]]

_PACKAGE = str(Path(__file__).parents[1])


class CallLane(PythonLane):
    """Passes images from the pipeline to the recipe's calls and returns the results to the pipeline.

    Each thread calls its own copies, as each of torch's worker processes does, so transforms need not be thread-safe.
    If a call may draw from the generators of the process, all calls run in the caller's thread.

    Args:
        calls: the recipe's calls, in order.
        layout: memory layout of finished samples.
    """

    name = "python"

    def __init__(self, pipeline: core.Pipeline, threads: int, calls: Sequence[Call], layout: Layout) -> None:
        self._calls = calls
        self._layout = layout
        self.workers: WorkerValues | None = None  # what get_worker_info() reports in the lane's threads
        self._own = threading.local()
        self.metadata: RowMetadata | None = None
        self._numbers = itertools.count()
        super().__init__(pipeline, 0 if any(call.process_wide for call in calls) else threads)

    @staticmethod
    def _next_job(pipeline: core.Pipeline, seconds: float) -> core.PythonJob | None:
        return pipeline.next_call(seconds)

    def _jobs_waiting(self) -> int:
        return self._pipeline.calls_waiting

    def _function_of_thread(self, call: int) -> CallFunction:
        """Returns this thread's copy of a call's function; the original if it cannot be copied, or without threads."""
        if self.threads == 0:
            return self._calls[call].function
        mine: dict[int, CallFunction] = self._own.__dict__.setdefault("functions", {})
        if call not in mine:
            try:
                function = self._calls[call].function
                mine[call] = copy_function(function, tuple(map(without_reseeding, function.called)))
            except Exception:  # objects that cannot be copied are shared
                mine[call] = self._calls[call].function
        return mine[call]

    def _metadata_of(self, job: core.PythonJob, call: Call) -> Metadata | None:
        return functools.partial(self.metadata, job.row) if call.metadata and self.metadata is not None else None

    def _thread_number(self) -> int:
        """Returns this thread's number within the lane."""
        if self.threads == 0:
            return 0
        mine = self._own.__dict__
        if "number" not in mine:
            mine["number"] = next(self._numbers)
        number: int = mine["number"]
        return number

    def _run_job(self, job: core.PythonJob) -> None:
        begin = time.perf_counter_ns()
        call = self._calls[job.call]
        try:
            with (
                as_worker(self.workers, self._thread_number()),
                sample_randomness(job.draw(call.draw), process_wide=call.process_wide),
            ):
                called = self._function_of_thread(job.call).call_pixels, job.pixels, self._metadata_of(job, call)
                in_a_worker = self.threads == 0 and self.workers is not None  # torch's would have forked before
                made = self._settings.run(*called) if in_a_worker else called[0](*called[1:])
            elements = (
                self._bytes_in_batch_order(made) if isinstance(made, torch.Tensor) else np.ascontiguousarray(made)
            )
        except Exception as error:
            self._fail_call(job, error, message_of(error))
        except BaseException as error:  # such as sys.exit: if it ended this thread, the batch would never complete
            if self.threads == 0:
                raise
            self._fail_call(job, error, format_error(error))
        else:
            took = time.perf_counter_ns() - begin
            if isinstance(made, torch.Tensor):
                self._pipeline.finish_elements(job, elements, took)
            else:
                self._pipeline.finish(job, elements, made.shape[1], made.shape[0], took)

    def _fail_call(self, job: core.PythonJob, error: BaseException, reason: str) -> None:
        set_traceback(error, _cut_traceback(traceback_of(error)))
        self._fail(job, error, f"{self._calls[job.call].name}: {reason}")

    def _bytes_in_batch_order(self, made: torch.Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        """Returns the finished tensor's bytes in the batch's memory order."""
        ordered = made.permute(1, 2, 0) if self._layout is Layout.CHANNELS_LAST else made
        # Flatten first: an axis of length 1 may have any stride, and such a tensor cannot be viewed as bytes.
        elements: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] = ordered.flatten().view(torch.uint8).numpy()
        return elements


def _cut_traceback(trace: TracebackType | None) -> TracebackType | None:
    """Returns the traceback from the first frame outside headrace on; all of it if there is no such frame."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        inner = inner.tb_next
    return inner or trace
