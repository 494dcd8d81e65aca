"""The native pipeline of one recipe with its Python lanes: batches in, tensors in this machine's memory out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from headrace._base.lifetimes.finalizers import Ending
from headrace._base.native import core
from headrace._engine.call_lane import CallLane
from headrace._engine.counters.counters import Counters
from headrace._engine.memory_format import Layout
from headrace._engine.pillow_lane import PillowLane
from headrace._engine.python_lane import PythonLane
from headrace._engine.storage_pool import StoragePool
from headrace._engine.worker_info import WorkerValues
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.steps.recipe import Recipe

_STEP_S = 0.005  # interval at which the caller's thread polls for returned work
_DLPACK_CODE = {torch.uint8: 1, torch.float16: 2, torch.float32: 2, torch.bfloat16: 4}


@dataclass(frozen=True)
class Failure:
    """One failed sample of a batch.

    Attributes:
        sample: number in the batch that was submitted; in a repair, an index into its places.
        original: the exception that Python code raised; None for native failures.
        part: the part of the sample that failed, for samples of several parts.
    """

    sample: int
    stage: str
    reason: str
    errno: int
    original: BaseException | None
    part: str = ""


@dataclass(eq=False)
class Flight:
    """A batch in flight.

    Attributes:
        batch: the native batch; holds the tensor that it is written into, unless that is a slot of the pipeline's ring.
        stream: handle of the stream that this tensor was allocated on; 0 without a device.
        engine: the engine that makes it, if there are several.
    """

    batch: core.Batch
    stream: int = 0
    engine: Engine | None = None


def byte_table(recipe: Recipe) -> np.ndarray[Any, Any]:
    """Returns the bytes of a recipe's lut, as the core takes them."""
    return recipe.lut.contiguous().view(torch.uint8).numpy()


class Engine(Ending):
    """Threads, slots and the Python lanes for one recipe and layout.

    Args:
        recipe: the steps applied to each sample.
        layout: memory layout of a batch.
        threads: number of native threads; 0: everything runs in the caller's thread, inside `wait`.
        slots_kept: number of free slots that are kept for the next batches.
        pin: whether batches are in pinned memory (of torch's caching host allocator).
        isa: instruction set of the kernels, for tests; "" for the best one.

    Attributes:
        endings: functions in C that end the threads; those of engines that are made later are added.
    """

    endings: list[Callable[[], object]]

    def __init__(
        self,
        recipe: Recipe,
        layout: Layout,
        *,
        threads: int,
        slots_kept: int,
        pin: bool = False,
        isa: str = "",
    ) -> None:
        self.recipe = recipe
        self.max_pixels = Image.MAX_IMAGE_PIXELS or 0
        self._layout = layout
        self._inline = threads == 0
        self._pin = pin
        self._storages = StoragePool(slots_kept)
        samples: dict[str, Any] = {
            "layout": layout.value,
            "max_pixels": self.max_pixels,
            "pass_order": pillow_rule.pass_order(),
        }
        self._pipeline = self._make_pipeline(samples, threads=threads, slots_kept=slots_kept, isa=isa)
        self.at_end = self._pipeline.close  # which ends the threads, those of Python too
        self.endings = [self._pipeline.close]
        self._lanes: list[PythonLane] = [PillowLane(self._pipeline, threads, recipe.mode, recipe.upright)]
        if calls := recipe.calls:
            self._lanes.append(CallLane(self._pipeline, threads, calls, layout))
        # Lanes whose jobs run in the caller's thread, inside `wait`.
        self._served_here = [lane for lane in self._lanes if lane.threads == 0]

    def _make_pipeline(self, samples: dict[str, Any], *, threads: int, slots_kept: int, isa: str) -> core.Pipeline:
        """Returns the native pipeline; `samples` are its arguments about samples."""
        lut = byte_table(self.recipe)
        backend = self._make_backend(lut, samples, slots_kept)
        return core.Pipeline(
            self.recipe, lut, threads=threads, slots_kept=slots_kept, isa=isa, backend=backend, **samples
        )

    def _make_backend(self, lut: np.ndarray[Any, Any], samples: dict[str, Any], slots_kept: int) -> Any:
        """Returns a backend of `_gpu`; None: batches are in this machine's memory."""
        return None

    def _empty(self, count: int, **where: Any) -> torch.Tensor:
        """Returns uninitialised memory for a batch; `where` are options of ``torch.empty``."""
        shape = (count, *self.recipe.shape)
        where = {"device": "cpu"} | where  # explicit, because torch's default device may be another
        return torch.empty(shape, dtype=self.recipe.dtype, memory_format=self._layout.memory_format, **where)

    def read_metadata(self, metadata: Callable[[int], dict[Any, Any]]) -> None:
        """Sets the function from which Python steps get the metadata (Pillow's ``info``) of the sample of a row."""
        for lane in self._lanes:
            if isinstance(lane, CallLane):
                lane.metadata = metadata

    def work_as(self, workers: WorkerValues) -> None:
        """Sets what ``get_worker_info()`` returns in Python steps. Only the first call counts, as with torch's
        persistent workers."""
        for lane in self._lanes:
            if isinstance(lane, CallLane) and lane.workers is None:
                lane.workers = workers

    def check_stream(self) -> None:
        """Raises RuntimeError if the caller's current stream cannot take a batch; called before any other work."""

    def submit(self, table: core.BlobTable, rows: np.ndarray[Any, Any], draws: np.ndarray[Any, Any]) -> Flight:
        """Starts a batch.

        Args:
            rows: int64 (n,), rows of `table`.
            draws: float64 (n, k), random numbers of each sample.
        """
        memory = None
        if self._pin:
            memory = self._empty(len(rows), pin_memory=True)
        elif self._inline:
            memory = self._stored(len(rows))
        return Flight(self._pipeline.submit(table, rows, draws, memory))

    def _stored(self, count: int) -> torch.Tensor:
        """Returns memory for a batch from the storage pool."""
        like = self._empty(count, device="meta")
        memory = torch.empty(0, dtype=like.dtype, device="cpu")
        return memory.set_(self._storages.take(like.nbytes), 0, like.shape, like.stride())

    def repair(
        self,
        flight: Flight,
        places: list[int],
        table: core.BlobTable,
        rows: np.ndarray[Any, Any],
        draws: np.ndarray[Any, Any],
    ) -> Flight:
        """Starts to make other samples in some `places` of a complete batch."""
        return Flight(self._pipeline.repair(flight.batch, places, table, rows, draws), flight.stream)

    def wait(self, flight: Flight, seconds: float) -> bool:
        """Waits and returns whether the batch is complete within `seconds`. Raises KeyboardInterrupt promptly."""
        if not self._served_here:
            return self._pipeline.wait(flight.batch, seconds)
        deadline = time.monotonic() + seconds
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
        """Returns the failed samples in order. A second call returns none."""
        failures = flight.batch.take_failures()
        if not failures:
            return []
        originals = self._take_errors(flight)
        return [Failure(*one, originals.get(one[0])) for one in sorted(failures)]

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        """Returns the batch as a tensor of n samples; `places` (ascending) selects samples, which are compacted."""
        count = len(flight.batch) if places is None else len(places)
        if places is not None:
            self._pipeline.compact(flight.batch, places)
        if (memory := flight.batch.memory) is not None:
            flight.batch.release()
            return memory if count == len(memory) else memory[:count]
        capsule = self._pipeline.tensor(flight.batch, count, _DLPACK_CODE[self.recipe.dtype])
        return torch.utils.dlpack.from_dlpack(capsule)

    def single(self, batch: Any) -> Any:
        """Returns the sample of a batch of one, without collation: a tensor of the class that the transforms make."""
        return batch[0].as_subclass(self.recipe.kind)

    def move_targets(self, targets: Any) -> Any:
        """Returns a batch's targets on the device of its images."""
        return targets

    def cancel(self, flight: Flight) -> None:
        """Stops a batch that is no longer needed: no further sample of it is begun, and its exceptions are dropped.

        If the batch is not in a slot (pinned memory, a device, no threads), blocks without the GIL until no thread
        writes to its memory.
        """
        self._pipeline.cancel(flight.batch)
        self._take_errors(flight)

    def _take_errors(self, flight: Flight) -> dict[int, BaseException]:
        return {sample: error for lane in self._lanes for sample, error in lane.take_errors(flight.batch.id).items()}

    def stages(self) -> list[tuple[str, int, int]]:
        """Returns (stage, items, busy nanoseconds summed over threads) since the engine started."""
        return [(name, items, ns) for name, (items, ns) in self.counters().stages.items()]

    def counters(self) -> Counters:
        """Returns all counters since the engine started."""
        stages = {name: (items, ns) for name, items, ns in self._pipeline.stats()}
        durations, size = self._pipeline.durations(), self._pipeline.bytes_read
        python = tuple(one for lane in self._lanes for one in lane.thread_ids())
        return Counters(stages, durations, size, tuple(self._pipeline.thread_ids), python, self._pipeline.asleep)

    def resize(self, threads: int) -> None:
        """Lets this many native threads work, 1 or more; batches do not depend on it. Does nothing after `close`.

        Raises:
            RuntimeError: the system allows no more threads, or the engine was made without any.
        """
        self._pipeline.resize(threads)
        for lane in self._lanes:
            lane.resize(threads)

    def place(self, cores: Sequence[int]) -> None:
        """Makes the native threads and the Python threads, also those of later, run on these cores only."""
        self._pipeline.place(list(cores))
        for lane in self._lanes:
            lane.place(cores)

    @property
    def engines(self) -> int:
        """Number of engines that make a batch, each with threads of its own."""
        return 1

    @property
    def slots(self) -> int:
        """Number of slots, free or in use."""
        slots: int = self._pipeline.slots
        return slots

    @property
    def closed(self) -> bool:
        closed: bool = self._pipeline.closed
        return closed

    def serves_in_this_thread(self) -> bool:
        """Returns whether the calling thread is one of this engine's Python threads, working on a sample."""
        return PythonLane.served_here() is self._pipeline

    def abandon_steps(self) -> None:
        """Makes `close` not wait for the jobs that Python threads are running."""
        for lane in self._lanes:
            lane.abandon_steps()

    def fits(self, recipe: Any, *, persists: bool = False) -> bool:
        """Returns whether this engine can be used for another epoch of `recipe`.

        Args:
            persists: it stands for persistent workers, which keep Pillow's limit of pixels.
        """
        same_limit = persists or self.max_pixels == (Image.MAX_IMAGE_PIXELS or 0)
        return not self.closed and self.recipe is recipe and same_limit

    def close(self) -> None:
        """Ends the threads; Python threads first finish their current step. Batches already handed out stay valid.
        Idempotent."""
        for lane in self._lanes:
            lane.close()
