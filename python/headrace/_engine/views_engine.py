"""Engines for recipes with several views: one decode for all views in this machine's memory, one engine a view on a
device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core
from headrace._engine.columns_engine import memory_of, parts_of
from headrace._engine.composite_engine import PartsEngine
from headrace._engine.destination import Destination
from headrace._engine.device_engine import make_engine
from headrace._engine.engine import Engine, Flight
from headrace._engine.image_engine import GivenPlan, ImageEngine, SampleOptions, allocate_batch, byte_table
from headrace._engine.lanes.decoding_lane import Decoding
from headrace._engine.storage_pool import StoragePool
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe


class ViewsEngine(ImageEngine):
    """Decodes each file once, the smallest box that holds what all views need, and makes every view of its rows.

    A batch is one piece of memory, one view after the other, as the columns of a ColumnsEngine are; if they are
    stacked, one sample after the other, with all its views. A batch of plans has memory of its own for each view.

    Args:
        recipe: a recipe with views.
        layout: memory layout of a batch; of batches of plans, one for each view.
        threads, slots_kept, pin, isa, decoding: as in `ImageEngine`.
    """

    def __init__(
        self,
        recipe: Recipe,
        layout: Layout | Sequence[Layout],
        *,
        threads: int,
        slots_kept: int,
        pin: bool = False,
        isa: str = "",
        decoding: Decoding | None = None,
    ) -> None:
        self._layouts = [layout] * len(recipe.views) if isinstance(layout, Layout) else list(layout)
        self._pools = [StoragePool(slots_kept) for _ in recipe.views]
        super().__init__(
            recipe, self._layouts[0], threads=threads, slots_kept=slots_kept, pin=pin, isa=isa, decoding=decoding
        )

    def _make_pipeline(self, samples: SampleOptions, *, threads: int, slots_kept: int, isa: str) -> core.Pipeline:
        views = self.recipe.views
        self._sample_bytes = [one.channels * one.height * one.width * one.dtype.itemsize for one in views]
        stacked = self.recipe.packing == "stack"
        if stacked:
            self._sample_bytes = [sum(self._sample_bytes)]
        luts = [byte_table(one) for one in views]
        return core.views_pipeline(
            views,
            luts,
            layouts=[one.value for one in self._layouts],
            stacked=stacked,
            threads=threads,
            max_pixels=samples["max_pixels"],
            pass_order=samples["pass_order"],
            slots_kept=slots_kept,
            isa=isa,
        )

    def submit(self, table: core.BlobTable, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        memory = memory_of(self._sample_bytes, len(rows)) if self._pin else None
        return Flight(self._pipeline.submit(table, rows, draws, memory))

    def submit_plans(self, table: core.BlobTable, plans: list[GivenPlan]) -> Flight:
        """Starts a batch whose samples have plans already; the views have no steps, and are not stacked.

        Args:
            table: a row for each sample. It is let go with the batch.
            plans: one for each view of each sample, sample by sample.
        """
        count = len(plans) // len(self.recipe.views)
        parts = zip(self.recipe.views, self._layouts, self._pools, strict=True)
        memory = [self._memory_of_view(*one, count) for one in parts]
        rows, draws = np.arange(count, dtype=np.int64), np.empty((count, 0))
        return Flight(self._pipeline.submit(table, rows, draws, memory, 0, plans, keep_table=False))

    def _memory_of_view(self, view: Recipe, layout: Layout, pool: StoragePool, count: int) -> torch.Tensor:
        if self._pin:
            return allocate_batch(view, layout, count, pin_memory=True)
        return pool.take_like(allocate_batch(view, layout, count, "meta"))

    def tensor(self, flight: Flight, places: list[int] | None = None) -> Any:
        """Returns the batch as a list or dict of tensors (n, C, H, W), or as one tensor (n, views, C, H, W).

        Args:
            flight: the batch.
            places: selects samples, ascending; None: all.
        """
        if isinstance(flight.batch.memory, list):
            flight.batch.release()
            return [_select_samples(one, places) for one in flight.batch.memory]
        parts = parts_of(flight.batch, self._sample_bytes)
        if self.recipe.packing == "stack":
            together = self._shape_views(parts[0], self.recipe)
            return _select_samples(together.view(-1, len(self.recipe.views), *together.shape[1:]), places)
        return self.recipe.pack_views(
            [
                _select_samples(self._shape_views(part, view), places)
                for part, view in zip(parts, self.recipe.views, strict=True)
            ]
        )

    def _shape_views(self, part: torch.Tensor, view: Recipe) -> torch.Tensor:
        values = part.view(view.dtype)
        if self._layout is Layout.CHANNELS_LAST:
            return values.view(-1, view.height, view.width, view.channels).permute(0, 3, 1, 2)
        return values.view(-1, view.channels, view.height, view.width)

    def single(self, batch: Any) -> object:
        """Returns the views of the sample of a batch of one."""
        return _take_single_view(self.recipe, batch)


class SeparateViews(PartsEngine[int]):
    """One engine for each view: each decodes every file, and has all threads, on a device whose kernel makes one output
    of a decode.

    Args:
        recipe: a recipe with views.
        layout, destination, threads, slots_kept: as in `make_engine`.
    """

    def __init__(
        self, recipe: Recipe, layout: Layout, destination: Destination, *, threads: int, slots_kept: int
    ) -> None:
        make = partial(make_engine, threads=threads, slots_kept=slots_kept)
        views = (make(view, layout, destination) for view in recipe.views)
        super().__init__(dict(enumerate(views)))
        self.recipe = recipe

    def _select_part(self, part: int, *where: Any) -> Any:
        return where

    def tensor(self, flight: Flight, places: list[int] | None = None) -> object:
        """Returns the batch as a list or dict of tensors (n, C, H, W); `places` (ascending) selects samples."""
        return self.recipe.pack_views(list(self.collect_parts(flight, places).values()))

    def single(self, batch: Any) -> object:
        """Returns the views of the sample of a batch of one."""
        return _take_single_view(self.recipe, batch)

    def move_targets(self, targets: object) -> object:
        return self._parts[0].move_targets(targets)

    def makes(self, product: object) -> bool:
        views = enumerate(self.recipe.views)
        return not self.closed and self.recipe is product and all(self._parts[n].makes(view) for n, view in views)


def _select_samples(values: torch.Tensor, places: list[int] | None) -> torch.Tensor:
    """Returns the samples at `places`, moved to the front: the result is in the same memory and order."""
    if places is None:
        return values
    values[: len(places)] = values[places]
    return values[: len(places)]


def _take_single_view(recipe: Recipe, batch: Any) -> object:
    if recipe.packing == "stack":
        return batch[0]
    made = zip(recipe.unpack_views(batch), recipe.views, strict=True)
    return recipe.pack_views([values[0].as_subclass(view.kind) for values, view in made])


def make_views_engine(
    recipe: Recipe,
    layout: Layout,
    destination: Destination,
    *,
    threads: int,
    slots_kept: int,
    pin: bool = False,
) -> Engine:
    """Returns an engine for a recipe with views, whose batches end on `destination`."""
    if destination.way == "memory":
        return ViewsEngine(recipe, layout, threads=threads, slots_kept=slots_kept, pin=pin)
    return SeparateViews(recipe, layout, destination, threads=threads, slots_kept=slots_kept)
