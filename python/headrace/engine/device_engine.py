"""Engines whose batches end on a device, ordered with the user's current stream; the host never waits."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from headrace.base.native import core
from headrace.engine import target as targets
from headrace.engine.engine import Engine, Failure, Flight
from headrace.engine.layout import Layout
from headrace.engine.target import Target, current_stream
from headrace.recipe.recipe import Recipe


def moved(value: Any, device: torch.device) -> Any:
    """Returns `value` with every tensor in it moved to `device`; to CUDA by non-blocking copies from pinned memory."""
    if isinstance(value, torch.Tensor):
        return value.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else value.to(device)
    if isinstance(value, dict):
        return type(value)({key: moved(one, device) for key, one in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(one, device) for one in value))
    if isinstance(value, (list, tuple)):
        return type(value)(moved(one, device) for one in value)
    return value


class _DeviceEngine(Engine):
    """Common part of both ways to a device: a batch's targets are moved there as well."""

    _target: Target

    def check_stream(self) -> None:
        current_stream(self._target.device)

    def place(self, targets: Any) -> Any:
        return moved(targets, self._target.device)


class FusedEngine(_DeviceEngine):
    """Workers stage planes of samples, and one kernel writes the batch into a tensor of torch's allocator.

    The tensor is allocated at submission, on the stream that is current then. The kernel waits for an event on that
    stream. The stream that is current when the batch is handed out waits for the kernel.
    """

    def __init__(self, recipe: Recipe, layout: Layout, target: Target, *, threads: int, slots_kept: int) -> None:
        self._target = target
        self._warned = False  # that the decoder refuses every file
        super().__init__(recipe, layout, threads=threads, slots_kept=slots_kept)

    def _make_backend(self, lut: np.ndarray[Any, Any], samples: dict[str, Any], slots_kept: int) -> Any:
        index = self._target.device.index or 0
        # The batches in flight, and one more that the device may still read.
        return targets.required().backend(
            self._target.kind,
            index,
            self.recipe,
            lut,
            batches=slots_kept + 1,
            decoder=self._target.decoder,
            shared=self._target.shared,
            nvjpeg=targets.nvjpeg_candidates(),
            **samples,
        )

    def submit(self, table: core.BlobTable, rows: np.ndarray[Any, Any], draws: np.ndarray[Any, Any]) -> Flight:
        stream = current_stream(self._target.device)
        memory = self._empty(len(rows), device=self._target.device)
        return Flight(self._pipeline.submit(table, rows, draws, memory, stream), stream)

    def wait(self, flight: Flight, seconds: float) -> bool:
        ready = super().wait(flight, seconds)
        if ready and not self._warned and (trouble := self._pipeline.trouble):
            self._warned = True
            remedy = "use decoder='cpu', which avoids these attempts, or fix the GPU's decoder"
            warnings.warn(f"{trouble}; {remedy}", RuntimeWarning, stacklevel=2)
        return ready

    def failures(self, flight: Flight) -> list[Failure]:
        """Returns the failed samples.

        Raises:
            RuntimeError: the device refused the whole batch.
        """
        if flight.batch.broken:
            raise RuntimeError(f"the batch could not be made on {self._target.device}: {flight.batch.broken}")
        return super().failures(flight)

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        memory = flight.batch.memory
        assert memory is not None
        stream = current_stream(self._target.device)
        self._pipeline.hand_over(flight.batch, stream)
        flight.batch.release()
        if stream != flight.stream:  # the allocator must know that another stream uses the memory
            memory.record_stream(torch.cuda.current_stream(self._target.device))
        return memory if places is None else memory[torch.tensor(places, device=memory.device)]


class CopyEngine(_DeviceEngine):
    """Batches are made in pinned memory and copied to the device on a separate stream."""

    def __init__(self, recipe: Recipe, layout: Layout, target: Target, *, threads: int, slots_kept: int) -> None:
        super().__init__(recipe, layout, threads=threads, slots_kept=slots_kept, pin=True)
        self._target = target
        self._copies = torch.cuda.Stream(target.device)  # type: ignore[no-untyped-call]

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        pinned = super().tensor(flight, places)
        current = torch.cuda.current_stream(self._target.device)
        with torch.cuda.stream(self._copies):
            batch = pinned.to(self._target.device, non_blocking=True)
        current.wait_stream(self._copies)
        batch.record_stream(current)
        return batch


def make_engine(
    recipe: Recipe,
    layout: Layout,
    target: Target,
    *,
    threads: int,
    slots_kept: int,
    pin: bool = False,
) -> Engine:
    """Returns an engine whose batches end on `target`."""
    if recipe.finished_by_python and target.way == "fused":  # Python makes the final tensor: no work for the kernel
        target = replace(target, way="copy" if target.device.type == "cuda" else "memory")
    if target.way == "fused":
        return FusedEngine(recipe, layout, target, threads=threads, slots_kept=slots_kept)
    if target.way == "copy":
        return CopyEngine(recipe, layout, target, threads=threads, slots_kept=slots_kept)
    return Engine(recipe, layout, threads=threads, slots_kept=slots_kept, pin=pin)
