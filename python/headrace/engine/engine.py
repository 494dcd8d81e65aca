"""The native pipeline of one recipe, with its Python lanes: batches in, tensors of this machine's memory out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from headrace.base.native import core
from headrace.engine.call_lane import CallLane
from headrace.engine.layout import Layout
from headrace.engine.pillow_lane import PillowLane
from headrace.engine.python_lane import PythonLane
from headrace.engine.storage_pool import StoragePool
from headrace.engine.worker_info import Workers
from headrace.pixels import pillow_rule
from headrace.recipe.recipe import Recipe

_STEP_S = 0.005  # between two looks for work that came back
_DLPACK_CODE = {torch.uint8: 1, torch.float16: 2, torch.float32: 2, torch.bfloat16: 4}


@dataclass(frozen=True)
class Failure:
    """One sample of a batch that could not be made."""

    sample: int
    stage: str
    reason: str
    errno: int
    original: BaseException | None


@dataclass(eq=False)
class Flight:
    """A batch on its way.

    Attributes:
        batch: holds the tensor that it is written into, if it is not a slot of the pipeline's own ring.
        stream: that this tensor was allocated for; 0: of no device.
        engine: whose it is, where there are several.
    """

    batch: core.Batch
    stream: int = 0
    engine: Engine | None = None


class Engine:
    """Threads, slots and the Python lanes for one recipe and layout.

    Args:
        recipe: what is done to each sample.
        layout: how the values of a batch lie in memory.
        threads: native threads; 0: everything runs in the caller's thread, inside `wait`.
        slots_kept: free slots that are kept for the next batches.
        pin: whether batches are in pinned memory (of torch's caching host allocator).
        isa: instruction set of the kernels, for tests; "" for the best one.
    """

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
        lut = recipe.lut.contiguous().view(torch.uint8).numpy()
        backend = self._make_backend(lut, samples, slots_kept)
        self._pipeline = core.Pipeline(
            recipe, lut, threads=threads, slots_kept=slots_kept, isa=isa, backend=backend, **samples
        )
        self._lanes: list[PythonLane] = [PillowLane(self._pipeline, threads)]
        if calls := recipe.calls:
            self._lanes.append(CallLane(self._pipeline, threads, calls, layout))
        # Lanes whose work is done in the caller's thread, while it waits.
        self._served_here = [lane for lane in self._lanes if lane.threads == 0]

    def _make_backend(self, lut: np.ndarray[Any, Any], samples: dict[str, Any], slots_kept: int) -> Any:
        """A backend of `_gpu`; None: this machine's memory."""
        return None

    def _empty(self, count: int, **where: Any) -> torch.Tensor:
        """Memory for a batch that the caller brings."""
        shape = (count, self.recipe.channels, self.recipe.height, self.recipe.width)
        where = {"device": "cpu"} | where  # whatever torch's default device is
        return torch.empty(shape, dtype=self.recipe.dtype, memory_format=self._layout.memory_format, **where)

    def read_metadata(self, metadata: Callable[[int], dict[Any, Any]]) -> None:
        """Python steps get the metadata of a sample's file, Pillow's ``info``, from this function of its row."""
        for lane in self._lanes:
            if isinstance(lane, CallLane):
                lane.metadata = metadata

    def work_as(self, workers: Workers) -> None:
        """What ``get_worker_info()`` says in a step; what was said first holds, as with torch's persistent workers."""
        for lane in self._lanes:
            if isinstance(lane, CallLane) and lane.workers is None:
                lane.workers = workers

    def check_stream(self) -> None:
        """Raises RuntimeError where the caller's current stream cannot take a batch now; before anything is done."""

    def submit(self, table: core.BlobTable, rows: np.ndarray[Any, Any], draws: np.ndarray[Any, Any]) -> Flight:
        """Starts a batch: `rows` int64 (n,) of the table, `draws` float64 (n, k)."""
        memory = None
        if self._pin:
            memory = self._empty(len(rows), pin_memory=True)
        elif self._inline:
            memory = self._stored(len(rows))
        return Flight(self._pipeline.submit(table, rows, draws, memory))

    def _stored(self, count: int) -> torch.Tensor:
        """Memory of the storage pool for a batch."""
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
        """Makes other samples in some places of a complete batch."""
        return Flight(self._pipeline.repair(flight.batch, places, table, rows, draws), flight.stream)

    def wait(self, flight: Flight, seconds: float) -> bool:
        """Whether the batch was complete within `seconds`. Raises KeyboardInterrupt promptly."""
        if not self._served_here:
            return self._pipeline.wait(flight.batch, seconds)
        deadline = time.monotonic() + seconds
        while True:
            # Python's part of a sample before the next sample: steps may count their calls, as in torch's main process.
            while any(lane.run_waiting() for lane in self._served_here) or (self._inline and self._pipeline.run_one()):
                pass
            # Others may still be at work, and may give a sample back.
            left = deadline - time.monotonic()
            patience = max(0.0, min(_STEP_S, left))
            if not self._inline and not self._pipeline.wait(flight.batch, 0.0):
                self._served_here[-1].run_waiting(patience)  # wakes up for the next call
                patience = 0.0
            if self._pipeline.wait(flight.batch, patience):
                return True
            if left <= 0 or self._pipeline.closed or flight.batch.cancelled:
                return False

    def failures(self, flight: Flight) -> list[Failure]:
        """The samples that could not be made, in order; once."""
        failures = flight.batch.take_failures()
        if not failures:
            return []
        originals = self._take_errors(flight)
        return [Failure(*one, originals.get(one[0])) for one in sorted(failures)]

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        """The batch as a tensor (n, C, H, W); `places`, ascending: only these samples, moved together."""
        count = len(flight.batch) if places is None else len(places)
        if places is not None:
            self._pipeline.compact(flight.batch, places)
        if (memory := flight.batch.memory) is not None:
            flight.batch.release()
            return memory if count == len(memory) else memory[:count]
        capsule = self._pipeline.tensor(flight.batch, count, _DLPACK_CODE[self.recipe.dtype])
        return torch.utils.dlpack.from_dlpack(capsule)

    def place(self, targets: Any) -> Any:
        """A batch's targets where its images are."""
        return targets

    def cancel(self, flight: Flight) -> None:
        """Nobody waits for this batch any more."""
        self._pipeline.cancel(flight.batch)
        self._take_errors(flight)

    def _take_errors(self, flight: Flight) -> dict[int, BaseException]:
        return {sample: error for lane in self._lanes for sample, error in lane.take_errors(flight.batch.id).items()}

    def stages(self) -> list[tuple[str, int, int]]:
        """(stage, items, busy nanoseconds over all threads) so far."""
        stages: list[tuple[str, int, int]] = self._pipeline.stats()
        return stages

    @property
    def slots(self) -> int:
        """Slots that exist, free or in use."""
        slots: int = self._pipeline.slots
        return slots

    @property
    def closed(self) -> bool:
        closed: bool = self._pipeline.closed
        return closed

    def serves_in_this_thread(self) -> bool:
        """Whether this is one of its Python threads, in the middle of a sample."""
        return PythonLane.served_here() is self._pipeline

    def wait_for_no_step(self) -> None:
        """From now on `close` does not wait for what Python threads have in hand."""
        for lane in self._lanes:
            lane.wait_for_no_step()

    def fits(self, recipe: Recipe) -> bool:
        """Whether it can go on with another epoch of this recipe."""
        return not self.closed and self.recipe is recipe and self.max_pixels == (Image.MAX_IMAGE_PIXELS or 0)

    def close(self) -> None:
        """Ends the threads, the Python ones after the step that each has in hand. Batches already handed out stay as
        they are. Idempotent."""
        for lane in self._lanes:
            lane.close()

    def __del__(self) -> None:
        if hasattr(self, "_lanes"):  # not where __init__ failed
            self.close()
