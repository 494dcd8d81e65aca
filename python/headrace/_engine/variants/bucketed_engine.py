"""Engine for recipes with several output sizes: one engine per size, made with the size's first batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core
from headrace._engine.composite_engine import CompositeEngine
from headrace._engine.destination import Destination, current_stream
from headrace._engine.device_engine import make_engine
from headrace._engine.engine import Engine, Failure, Flight
from headrace._engine.lanes.call_lane import RowMetadata
from headrace._engine.lanes.worker_info import WorkerValues
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe

_SLOTS_KEPT = 2  # per engine; small, because the memory of all sizes adds up


class BucketedEngine(CompositeEngine):
    """Submits each batch to the engine of its samples' variant.

    Args:
        recipe: a recipe with variants.
        variant_of: int64 (n,), the variant's number for each sample of the dataset.
        threads: number of threads of each engine; those of sizes without a batch in flight sleep.
    """

    def __init__(
        self,
        recipe: Recipe,
        layout: Layout,
        destination: Destination,
        variant_of: npt.NDArray[np.int64],
        *,
        threads: int,
        pin: bool = False,
    ) -> None:
        super().__init__()
        self.recipe, self._variant_of = recipe, variant_of
        self._threads, self._pin = threads, pin
        self._layout, self._destination = layout, destination
        self._engines: dict[int, Engine] = {}
        self._metadata: RowMetadata | None = None
        self.endings = []
        self._workers: WorkerValues | None = None
        self._cores: tuple[int, ...] = ()

    def members(self) -> list[Engine]:
        return list(self._engines.values())

    def work_as(self, workers: WorkerValues) -> None:
        self._workers = self._workers or workers

    def set_metadata_reader(self, metadata: RowMetadata) -> None:
        self._metadata = metadata
        super().set_metadata_reader(metadata)

    def check_stream(self) -> None:
        current_stream(self._destination.device)

    def submit(self, table: core.BlobTable, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        """Starts a batch.

        Raises:
            ValueError: its samples belong to several variants.
        """
        variants = self._variant_of[rows]
        if (variants != variants[0]).any():
            other = int(np.argmax(variants != variants[0]))
            sizes = self.recipe.sizes
            raise ValueError(
                f"sample {rows[other]} has output size {sizes[variants[other]]}, but sample {rows[0]} of its batch has "
                f"{sizes[variants[0]]}; use headrace.sampler.AspectRatioBatchSampler with the same sizes"
            )
        engine = self._engine(int(variants[0]))
        flight = engine.submit(table, rows, draws)
        flight.engine = engine
        return flight

    def _engine(self, variant: int) -> Engine:
        if variant not in self._engines:
            if self._closed:
                raise RuntimeError("the loader was closed")
            recipe = self.recipe.variants[variant]
            self._engines[variant] = made = make_engine(
                recipe,
                self._layout,
                self._destination,
                threads=self._threads,
                slots_kept=_SLOTS_KEPT,
                pin=self._pin,
            )
            self.endings += made.endings
            if self._metadata is not None:
                made.set_metadata_reader(self._metadata)
            if self._workers is not None:
                made.work_as(self._workers)
            if self._cores:
                made.bind_threads(self._cores)
        return self._engines[variant]

    @staticmethod
    def _engine_of(flight: Flight) -> Engine:
        assert flight.engine is not None
        return flight.engine

    def repair(self, flight: Flight, *where: Any) -> Flight:
        engine = self._engine_of(flight)
        repaired = engine.repair(flight, *where)
        repaired.engine = engine
        return repaired

    def wait(self, flight: Flight, seconds: float) -> bool:
        return self._engine_of(flight).wait(flight, seconds)

    def failures(self, flight: Flight) -> list[Failure]:
        return self._engine_of(flight).failures(flight)

    def tensor(self, flight: Flight, places: list[int] | None = None) -> object:
        return self._engine_of(flight).tensor(flight, places)

    def single(self, batch: torch.Tensor) -> torch.Tensor:
        return batch[0].as_subclass(self.recipe.kind)

    def move_targets(self, targets: object) -> object:
        return next(iter(self._engines.values())).move_targets(targets)

    def cancel(self, flight: Flight) -> None:
        self._engine_of(flight).cancel(flight)

    def resize(self, threads: int) -> None:
        """Lets this many threads work in each engine, also in those that are made later."""
        self._threads = threads
        super().resize(threads)

    def bind_threads(self, cores: Sequence[int]) -> None:
        self._cores = tuple(cores)
        super().bind_threads(cores)

    def makes(self, product: object) -> bool:
        if self.closed or self.recipe is not product:
            return False
        return all(one.makes(self.recipe.variants[n]) for n, one in self._engines.items())
