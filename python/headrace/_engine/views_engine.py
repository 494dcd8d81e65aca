"""Engines for recipes with several views: one decode for all views in this machine's memory, one engine a view on a
device."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from headrace._base.native import core
from headrace._engine.columns_engine import memory_of, parts_of
from headrace._engine.counters.counters import Counters, summed
from headrace._engine.destination import Destination, current_stream
from headrace._engine.device_engine import make_engine
from headrace._engine.engine import Engine, Failure, Flight, byte_table
from headrace._engine.memory_format import Layout
from headrace._recipe.steps.recipe import Recipe


class ViewsEngine(Engine):
    """Decodes each file once, the smallest box that holds what all views need, and makes every view of its rows.

    A batch lies in one piece of memory, one view after the other, as the columns of a GatherEngine do; if they are
    stacked, one sample after the other, with all its views.

    Args:
        recipe: a recipe with views.
        layout, threads, slots_kept, pin, isa: as in `Engine`.
    """

    def _make_pipeline(self, samples: dict[str, Any], *, threads: int, slots_kept: int, isa: str) -> core.Pipeline:
        views = self.recipe.views
        self._sample_bytes = [one.channels * one.height * one.width * one.dtype.itemsize for one in views]
        stacked = self.recipe.packing == "stack"
        if stacked:
            self._sample_bytes = [sum(self._sample_bytes)]
        luts = [byte_table(one) for one in views]
        return core.views_pipeline(
            views, luts, stacked=stacked, threads=threads, slots_kept=slots_kept, isa=isa, **samples
        )

    def submit(self, table: core.BlobTable, rows: np.ndarray[Any, Any], draws: np.ndarray[Any, Any]) -> Flight:
        memory = memory_of(self._sample_bytes, len(rows)) if self._pin else None
        return Flight(self._pipeline.submit(table, rows, draws, memory))

    def tensor(self, flight: Flight, places: list[int] | None = None) -> Any:
        """Returns the batch as a list or dict of tensors (n, C, H, W), or as one tensor (n, views, C, H, W).

        Args:
            flight: the batch.
            places: selects samples, ascending; None: all.
        """
        parts = parts_of(flight.batch, self._sample_bytes)
        if self.recipe.packing == "stack":
            together = self._shaped(parts[0], self.recipe)
            return _selected(together.view(-1, len(self.recipe.views), *together.shape[1:]), places)
        return self.recipe.packed(
            [_selected(self._shaped(part, view), places) for part, view in zip(parts, self.recipe.views, strict=True)]
        )

    def _shaped(self, part: torch.Tensor, view: Recipe) -> torch.Tensor:
        values = part.view(view.dtype)
        if self._layout is Layout.CHANNELS_LAST:
            return values.view(-1, view.height, view.width, view.channels).permute(0, 3, 1, 2)
        return values.view(-1, view.channels, view.height, view.width)

    def single(self, batch: Any) -> Any:
        """Returns the views of the sample of a batch of one."""
        return _single(self.recipe, batch)


@dataclass(eq=False)
class _Flights(Flight):
    """A batch of which each view is a batch of its own engine; `batch` is the first view's."""

    parts: list[Flight] = field(default_factory=list)


class SeparateViews(Engine):
    """One engine for each view: each decodes every file, and has all threads, on a device whose kernel makes one output
    of a decode.

    Args:
        recipe: a recipe with views.
        layout, destination, threads, slots_kept: as in `make_engine`.
    """

    def __init__(
        self, recipe: Recipe, layout: Layout, destination: Destination, *, threads: int, slots_kept: int
    ) -> None:
        self.recipe, self._destination = recipe, destination
        self._lanes = []
        self._engines: list[Engine] = []
        for view in recipe.views:
            self._engines.append(make_engine(view, layout, destination, threads=threads, slots_kept=slots_kept))
        self.endings = [one for engine in self._engines for one in engine.endings]

    def check_stream(self) -> None:
        current_stream(self._destination.device)

    def submit(self, table: core.BlobTable, rows: np.ndarray[Any, Any], draws: np.ndarray[Any, Any]) -> Flight:
        parts: list[Flight] = []
        try:
            for engine in self._engines:
                parts.append(engine.submit(table, rows, draws))
        except BaseException:  # memory of a device may be short: the views that were begun are given up
            for engine, part in zip(self._engines, parts, strict=False):
                engine.cancel(part)
            raise
        return _Flights(parts[0].batch, parts=parts)

    def _of(self, flight: Flight) -> list[tuple[Engine, Flight]]:
        assert isinstance(flight, _Flights)
        return list(zip(self._engines, flight.parts, strict=True))

    def repair(self, flight: Flight, *where: Any) -> Flight:
        parts = [engine.repair(part, *where) for engine, part in self._of(flight)]
        return _Flights(parts[0].batch, parts=parts)

    def wait(self, flight: Flight, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        return all(engine.wait(part, max(0.0, deadline - time.monotonic())) for engine, part in self._of(flight))

    def failures(self, flight: Flight) -> list[Failure]:
        """Returns the samples of which a view failed, with the failure of the first such view."""
        found: dict[int, Failure] = {}
        for engine, part in self._of(flight):
            for one in engine.failures(part):
                found.setdefault(one.sample, one)
        return [found[sample] for sample in sorted(found)]

    def tensor(self, flight: Flight, places: list[int] | None = None) -> Any:
        """Returns the batch as a list or dict of tensors (n, C, H, W); `places` (ascending) selects samples."""
        return self.recipe.packed([engine.tensor(part, places) for engine, part in self._of(flight)])

    def single(self, batch: Any) -> Any:
        """Returns the views of the sample of a batch of one."""
        return _single(self.recipe, batch)

    def move_targets(self, targets: Any) -> Any:
        return self._engines[0].move_targets(targets)

    def cancel(self, flight: Flight) -> None:
        for engine, part in self._of(flight):
            engine.cancel(part)

    def counters(self) -> Counters:
        return summed(one.counters() for one in self._engines)

    def resize(self, threads: int) -> None:
        for engine in self._engines:
            engine.resize(threads)

    def place(self, cores: Sequence[int]) -> None:
        for engine in self._engines:
            engine.place(cores)

    @property
    def slots(self) -> int:
        return sum(engine.slots for engine in self._engines)

    @property
    def closed(self) -> bool:
        return any(engine.closed for engine in self._engines)

    def serves_in_this_thread(self) -> bool:
        return any(engine.serves_in_this_thread() for engine in self._engines)

    def abandon_steps(self) -> None:
        for engine in self._engines:
            engine.abandon_steps()

    def fits(self, recipe: Any, *, persists: bool = False) -> bool:
        parts = zip(self._engines, self.recipe.views, strict=True)
        return self.recipe is recipe and all(engine.fits(view, persists=persists) for engine, view in parts)

    def close(self) -> None:
        for engine in self._engines:
            engine.close()


def _selected(values: torch.Tensor, places: list[int] | None) -> torch.Tensor:
    """Returns the samples at `places`, moved to the front: the result lies in the same memory, in the same order."""
    if places is None:
        return values
    values[: len(places)] = values[places]
    return values[: len(places)]


def _single(recipe: Recipe, batch: Any) -> Any:
    if recipe.packing == "stack":
        return batch[0]
    made = zip(recipe.unpacked(batch), recipe.views, strict=True)
    return recipe.packed([values[0].as_subclass(view.kind) for values, view in made])


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
