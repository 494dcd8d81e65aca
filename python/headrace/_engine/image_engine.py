"""The native pipeline of one recipe of images: batches in, tensors in this machine's memory out."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from headrace._base.native import core
from headrace._engine.engine import Flight
from headrace._engine.lanes.call_lane import CallLane
from headrace._engine.lanes.decoding_lane import Decoding
from headrace._engine.lanes.pillow_lane import PillowLane
from headrace._engine.lanes.python_lane import PythonLane
from headrace._engine.pipeline_engine import PipelineEngine
from headrace._engine.storage_pool import StoragePool
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

#: The size of an image, (width, height), and a plan for it, as bind/plan.cpp reads it.
GivenPlan: TypeAlias = "tuple[tuple[int, int], Mapping[str, Any]]"

#: The DLPack type code of a dtype.
DLPACK_CODE = {torch.uint8: 1, torch.float16: 2, torch.float32: 2, torch.bfloat16: 4}


def byte_table(recipe: Recipe) -> npt.NDArray[np.uint8]:
    """Returns the bytes of a recipe's lut, as the core takes them."""
    return recipe.lut.contiguous().view(torch.uint8).numpy()


def allocate_batch(
    recipe: Recipe, layout: Layout, count: int, device: torch.device | str = "cpu", *, pin_memory: bool = False
) -> torch.Tensor:
    """Returns uninitialised memory for `count` samples of a recipe, never on torch's default device."""
    return torch.empty(
        (count, *recipe.shape),
        dtype=recipe.dtype,
        memory_format=layout.memory_format,
        device=device,
        pin_memory=pin_memory,
    )


class SampleOptions(TypedDict):
    """Arguments of a pipeline about its samples."""

    layout: str
    max_pixels: int
    pass_order: str


class ImageEngine(PipelineEngine):
    """Threads, slots and the Python lanes for one recipe and layout.

    Args:
        recipe: the steps applied to each sample.
        layout: memory layout of a batch.
        threads: number of native threads; 0: everything runs in the caller's thread, inside `wait`.
        slots_kept: number of free slots that are kept for the next batches.
        pin: whether batches are in pinned memory (of torch's caching host allocator).
        isa: instruction set of the kernels, for tests; "" for the best one.
        decoding: how files are decoded that the pipeline does not decode; None: by Pillow.
        frames: number of consecutive samples that are stored together, as a clip (C, frames, H, W). Tensors have the
            shape of single samples all the same: a view gives the memory its shape.
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
        decoding: Decoding | None = None,
        frames: int = 1,
    ) -> None:
        self._frames = frames
        self.recipe = recipe
        self.max_pixels = Image.MAX_IMAGE_PIXELS or 0
        self._layout, self._pin = layout, pin
        self._storages = StoragePool(slots_kept)
        samples = SampleOptions(layout=layout.value, max_pixels=self.max_pixels, pass_order=pillow_rule.pass_order())
        if decoding is None:
            decoding = Decoding("pillow", functools.partial(PillowLane, mode=recipe.mode, upright=recipe.upright))
        self.decoder = decoding.stage
        pipeline = self._make_pipeline(samples, threads=threads, slots_kept=slots_kept, isa=isa)
        lanes: list[PythonLane] = [decoding.make_lane(pipeline, threads)]
        if calls := recipe.calls:
            lanes.append(CallLane(pipeline, threads, calls, layout))
        super().__init__(pipeline, lanes, inline=threads == 0)

    def _make_pipeline(self, samples: SampleOptions, *, threads: int, slots_kept: int, isa: str) -> core.Pipeline:
        """Returns the native pipeline."""
        lut = byte_table(self.recipe)
        backend = self._make_backend(lut, samples, slots_kept)
        return core.Pipeline(
            self.recipe,
            lut,
            threads=threads,
            slots_kept=slots_kept,
            isa=isa,
            backend=backend,
            decoder=self.decoder,
            frames=self._frames,
            **samples,
        )

    def _make_backend(self, lut: npt.NDArray[np.uint8], samples: SampleOptions, slots_kept: int) -> CapsuleType | None:
        """Returns a backend of `_gpu`; None: batches are in this machine's memory."""
        return None

    def _allocate_batch(
        self, count: int, device: torch.device | str = "cpu", *, pin_memory: bool = False
    ) -> torch.Tensor:
        """Returns uninitialised memory for a batch, never on torch's default device, which may be another."""
        return allocate_batch(self.recipe, self._layout, count, device, pin_memory=pin_memory)

    def submit(self, table: core.BlobTable, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        """Starts a batch.

        Args:
            rows: int64 (n,), rows of `table`.
            draws: float64 (n, k), random numbers of each sample.
        """
        memory = None
        if self._pin:
            memory = self._allocate_batch(len(rows), pin_memory=True)
        elif self._inline:
            memory = self._take_storage(len(rows))
        return Flight(self._pipeline.submit(table, rows, draws, memory))

    def submit_plans(self, table: core.BlobTable, plans: list[GivenPlan]) -> Flight:
        """Starts a batch whose samples have plans already; the recipe has no steps.

        Args:
            table: a row for each sample. It is let go with the batch.
            plans: one for each sample, which make outputs of the recipe's size.
        """
        count = len(plans)
        memory, stream = self._memory_of_plans(count)
        rows, draws = np.arange(count, dtype=np.int64), np.empty((count, 0))
        return Flight(self._pipeline.submit(table, rows, draws, memory, stream, plans, keep_table=False), stream)

    def _memory_of_plans(self, count: int) -> tuple[torch.Tensor, int]:
        """Returns memory for a batch, and the stream that it was allocated on."""
        return self._allocate_batch(count, pin_memory=True) if self._pin else self._take_storage(count), 0

    def _take_storage(self, count: int) -> torch.Tensor:
        """Returns memory for a batch from the storage pool."""
        return self._storages.take_like(self._allocate_batch(count, device="meta"))

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        """Returns the batch as a tensor of n samples; `places` (ascending) selects samples, which are compacted."""
        count = len(flight.batch) if places is None else len(places)
        if places is not None:
            self._pipeline.compact(flight.batch, places)
        if isinstance(memory := flight.batch.memory, torch.Tensor):
            flight.batch.release()
            return memory if count == len(memory) else memory[:count]
        capsule = self._pipeline.tensor(flight.batch, count, DLPACK_CODE[self.recipe.dtype])
        return torch.utils.dlpack.from_dlpack(capsule)

    def single(self, batch: torch.Tensor | Sequence[torch.Tensor]) -> object:
        """Returns the sample of a batch of one, without collation: a tensor of the class that the transforms make."""
        return batch[0].as_subclass(self.recipe.kind)

    def makes(self, product: object) -> bool:
        return not self.closed and self.recipe is product

    def has_current_limit(self) -> bool:
        return self.max_pixels == (Image.MAX_IMAGE_PIXELS or 0)
