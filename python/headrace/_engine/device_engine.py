"""Engines whose batches end on a device, ordered with the user's current stream; the host never waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import numpy.typing as npt
import torch

from headrace._base import loggers, messages
from headrace._base.cores import usable_cores
from headrace._base.native import core
from headrace._engine import destination as destinations
from headrace._engine.destination import Destination, current_stream
from headrace._engine.engine import Engine, Failure, Flight
from headrace._engine.image_engine import ImageEngine, SampleOptions
from headrace._engine.lanes.decoding_lane import Decoding
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe

if TYPE_CHECKING:
    from typing_extensions import CapsuleType


@dataclass(frozen=True)
class Calls:
    """How nvJPEG is called.

    Attributes:
        lanes: number of threads that call it.
        group: number of images in a call, at most.
        cores: number of CPU cores that the lanes keep busy.
    """

    lanes: int
    group: int
    cores: int


#: By decoder; measured on an H100 (docs/decisions/0012). A call on CUDA cores takes 65 ms and more, however few images
#: it has, and leaves most of the GPU idle.
CALLS = {"hardware": Calls(lanes=2, group=64, cores=2), "cuda": Calls(lanes=4, group=128, cores=0)}


def decoding_threads(destination: Destination, wanted: int) -> int:
    """Returns the number of threads that decode beside the lanes of the GPU's decoder, of `wanted` ones.

    Threads that share files with the JPEG engines leave the lanes their cores: with a thread on each core the engines
    delivered two thirds of what they can.
    """
    if destination.kind != "cuda" or destination.decoder not in CALLS or not destination.shared:
        return wanted
    return min(wanted, max(1, usable_cores() - CALLS[destination.decoder].cores))


def moved_tensor(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Returns a tensor on `device`; to CUDA by a non-blocking copy from pinned memory."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def move_tensors(value: object, device: torch.device) -> object:
    """Returns `value` with every tensor in it moved to `device`, as by `moved_tensor`."""
    if isinstance(value, torch.Tensor):
        return moved_tensor(value, device)
    if isinstance(value, dict):
        return type(value)({key: move_tensors(one, device) for key, one in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        kind: Any = type(value)
        return kind(*(move_tensors(one, device) for one in value))
    if isinstance(value, (list, tuple)):
        return type(value)(move_tensors(one, device) for one in value)
    return value


class _DeviceEngine(ImageEngine):
    """Common part of both ways to a device: a batch's targets are moved there as well."""

    _destination: Destination

    def check_stream(self) -> None:
        current_stream(self._destination.device)

    def move_targets(self, targets: object) -> object:
        return move_tensors(targets, self._destination.device)


class EngineOptions(TypedDict):
    """Arguments of an engine of images, wherever its batches end."""

    threads: int
    slots_kept: int
    decoding: Decoding | None
    frames: int


class FusedEngine(_DeviceEngine):
    """Workers stage planes of samples, and one kernel writes the batch into a tensor of torch's allocator.

    The tensor is allocated at submission, on the stream that is current then. The kernel waits for an event on that
    stream. The stream that is current when the batch is handed out waits for the kernel.
    """

    def __init__(
        self,
        recipe: Recipe,
        layout: Layout,
        destination: Destination,
        *,
        threads: int,
        slots_kept: int,
        decoding: Decoding | None = None,
        frames: int = 1,
    ) -> None:
        self._destination = destination
        self._warned = False  # that the decoder refuses every file
        threads = decoding_threads(destination, threads)
        super().__init__(recipe, layout, threads=threads, slots_kept=slots_kept, decoding=decoding, frames=frames)

    def resize(self, threads: int) -> None:
        super().resize(decoding_threads(self._destination, threads))

    def _make_backend(self, lut: npt.NDArray[np.uint8], samples: SampleOptions, slots_kept: int) -> CapsuleType:
        index = self._destination.device.index or 0
        calls = CALLS.get(self._destination.decoder)
        # The batches in flight, and one more that the device may still read.
        backend: CapsuleType = destinations.require_gpu().backend(
            self._destination.kind,
            index,
            self.recipe,
            lut,
            batches=slots_kept + 1,
            decoder=self._destination.decoder,
            shared=self._destination.shared,
            frames=self._frames,
            nvjpeg=destinations.nvjpeg_candidates(),
            **({} if calls is None else {"lanes": calls.lanes, "group": calls.group}),
            **samples,
        )
        return backend

    def submit(self, table: core.BlobTable, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        stream = current_stream(self._destination.device)
        memory = self._allocate_batch(len(rows), device=self._destination.device)
        return Flight(self._pipeline.submit(table, rows, draws, memory, stream), stream)

    def _memory_of_plans(self, count: int) -> tuple[torch.Tensor, int]:
        device = self._destination.device
        return self._allocate_batch(count, device=device), current_stream(device)

    def wait(self, flight: Flight, seconds: float) -> bool:
        ready = super().wait(flight, seconds)
        if ready and not self._warned and (trouble := self._pipeline.trouble):
            self._warned = True
            remedy = "use decoder='cpu', which avoids these attempts, or fix the GPU's decoder"
            messages.warn(f"{trouble}; {remedy}", RuntimeWarning)
        return ready

    def failures(self, flight: Flight) -> list[Failure]:
        """Returns the failed samples.

        Raises:
            RuntimeError: the device refused the whole batch.
        """
        if flight.batch.broken:
            raise RuntimeError(f"the batch could not be made on {self._destination.device}: {flight.batch.broken}")
        return super().failures(flight)

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        memory = flight.batch.memory
        assert isinstance(memory, torch.Tensor)
        stream = current_stream(self._destination.device)
        self._pipeline.hand_over(flight.batch, stream)
        flight.batch.release()
        if stream != flight.stream:  # the allocator must know that another stream uses the memory
            memory.record_stream(torch.cuda.current_stream(self._destination.device))
        return memory if places is None else memory[torch.tensor(places, device=memory.device)]


class CopyEngine(_DeviceEngine):
    """Batches are made in pinned memory and copied to the device on a separate stream."""

    def __init__(
        self,
        recipe: Recipe,
        layout: Layout,
        destination: Destination,
        *,
        threads: int,
        slots_kept: int,
        decoding: Decoding | None = None,
        frames: int = 1,
    ) -> None:
        options = EngineOptions(threads=threads, slots_kept=slots_kept, decoding=decoding, frames=frames)
        super().__init__(recipe, layout, pin=True, **options)
        self._destination = destination
        self._copies = torch.cuda.Stream(destination.device)  # type: ignore[no-untyped-call]

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        pinned = super().tensor(flight, places)
        current = torch.cuda.current_stream(self._destination.device)
        with torch.cuda.stream(self._copies):
            batch = pinned.to(self._destination.device, non_blocking=True)
        current.wait_stream(self._copies)
        batch.record_stream(current)
        return batch


def destination_for(recipe: Recipe, destination: Destination) -> Destination:
    """Returns `destination`, whose way there is a copy if the recipe leaves no work for the device's kernel."""
    if not recipe.finished_here or destination.way != "fused":
        return destination
    if destination.device.type == "cuda":
        return replace(destination, way="copy", why="made in pinned memory and copied: the last step is the CPU's")
    return replace(destination, way="memory", why="")


def make_engine(
    recipe: Recipe,
    layout: Layout,
    destination: Destination,
    *,
    threads: int,
    slots_kept: int,
    pin: bool = False,
    decoding: Decoding | None = None,
    frames: int = 1,
) -> Engine:
    """Returns an engine whose batches end on `destination`.

    Args:
        decoding, frames: see `ImageEngine`.
    """
    destination = destination_for(recipe, destination)
    if destination.why:
        loggers.device.info("device %s: %s", destination.device, destination.why)
    options = EngineOptions(threads=threads, slots_kept=slots_kept, decoding=decoding, frames=frames)
    if destination.way == "fused":
        return FusedEngine(recipe, layout, destination, **options)
    if destination.way == "copy":
        return CopyEngine(recipe, layout, destination, **options)
    return ImageEngine(recipe, layout, pin=pin, **options)
