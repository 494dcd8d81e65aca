"""The main process's part: native threads and the device make the values of records."""

from __future__ import annotations

import functools
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch._utils import ExceptionWrapper

from headrace._base.errors import make_native_cause
from headrace._base.messages import printable
from headrace._base.native import core
from headrace._base.safe_exceptions import add_note, without_frames
from headrace._engine.counters.counters import Counters, sum_counters
from headrace._engine.destination import Destination
from headrace._engine.device_engine import make_engine
from headrace._engine.engine import Failure, Flight
from headrace._engine.image_engine import GivenPlan, ImageEngine
from headrace._engine.lanes.decoding_lane import Decoding
from headrace._engine.views_engine import ViewsEngine
from headrace._helpers.argument import Helpers
from headrace._helpers.helper_lane import add_helpers
from headrace._helpers.ray_helpers import addresses_of
from headrace._helpers.requests import PlanRequests
from headrace._loading.records.record_batch import AHEAD, ImageRecord, RecordBatch, RecordedBatch, group_by_files
from headrace._loading.records.record_lane import RecordLane, RecordsUnderWay, raise_as_workers, wrap_error
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.recipe import Recipe

_MOST_ENGINES = 8  # of different sizes and tables
_SECONDS = 1.0


@dataclass(eq=False)
class _Making:
    """What makes a `RecordBatch`, alone or together with others of the same files."""

    engine: _Engine
    flight: Flight
    records: list[RecordBatch]

    def collect(self, record: RecordBatch) -> torch.Tensor:
        """Returns the values of one of the records, which are made."""
        made = self.engine.native.tensor(self.flight)
        return made if len(self.records) == 1 else made[self.records.index(record)]

    def let_go(self, record: RecordBatch) -> None:
        """Called when a record was handed out or given up."""
        record.under_way = None
        if not any(one.under_way is self for one in self.records):
            self.engine.end_flight(self.flight)


class _Engine:
    """An engine for the records of one size and table, or of several that share files."""

    def __init__(self, native: ImageEngine, under_way: RecordsUnderWay) -> None:
        self.native, self.under_way = native, under_way
        self.in_flight, self._leaves = 0, False

    def end_flight(self, flight: Flight) -> None:
        """Called when a batch was handed out or given up."""
        self.under_way.remove(flight.batch.id)
        self.in_flight -= 1
        if self._leaves and not self.in_flight:
            self.native.close()

    def close(self) -> None:
        """Ends the threads, once no batch is in flight."""
        self._leaves = True
        if not self.in_flight:
            self.native.close()


class RecordEngines:
    """Makes the records of one loader's batches.

    Args:
        destination: where the batches go.
        threads: number of native threads of each engine; 0: the caller's.
        helpers: other machines that make a part of the values.
        timeout: see `HelperLane`.

    Attributes:
        pins: whether batches in this machine's memory are pinned.
    """

    def __init__(self, destination: Destination, threads: int, helpers: Helpers = (), timeout: float = 0.0) -> None:
        self._helpers, self._timeout = helpers, timeout
        self._destination, self._threads, self.pins = destination, threads, False
        self._engines: OrderedDict[Any, _Engine] = OrderedDict()  # the one used last at the end
        self._is_closed = False
        self._leaving: list[_Engine] = []  # that have batches in flight
        self._counted = Counters()  # by those that have left

    def begin(self, recorded: RecordedBatch, entry_points: core.EntryPoints | None) -> None:
        """Begins to make the records of a batch, those that are not begun. The host does not wait."""
        buffer: Any = recorded.files.numpy()
        for records in self._group([one for one in recorded.records if one.under_way is None]):
            engine, images = self._engine_of(records), records[0].images
            begins = np.array([one.begin for one in images], np.int64)
            sizes = np.array([one.nbytes for one in images], np.int64)
            table = core.BlobTable.of_spans([buffer], np.zeros_like(begins), begins, sizes)
            if entry_points is not None:
                table = table.entered_by(entry_points)
            views = zip(*(one.images for one in records), strict=True)
            flight = engine.native.submit_plans(table, [_plan_of(one) for sample in views for one in sample])
            engine.in_flight += 1
            engine.under_way.add(flight.batch.id, images)
            making = _Making(engine, flight, records)
            for one in records:
                one.under_way = making
            if self._is_closed:
                engine.close()  # with this batch

    def _group(self, records: list[RecordBatch]) -> list[list[RecordBatch]]:
        """Returns the records that one engine makes of one decode. A device's kernel makes one output of a decode."""
        return group_by_files(records) if self._destination.way == "memory" else [[one] for one in records]

    def finish(self, recorded: RecordedBatch) -> None:
        """Waits until all values of a batch are made.

        Raises:
            Exception: what the library raises that decodes a damaged file, of the first sample that has one; a note
                names the sample and its file.
            RuntimeError: the device refused the batch, or its current stream is captured.
        """
        failed = []
        for making in _makings_of(recorded):
            native = making.engine.native
            while not native.wait(making.flight, _SECONDS):
                if native.closed:
                    raise RuntimeError("the loader was closed while this batch was made")
            failed += [(one, making.records[0]) for one in native.failures(making.flight)[:1]]
        if failed:  # samples are made one after another by torch's workers, whatever they have images of
            failure, record = min(failed, key=lambda one: one[0].sample)
            raise _error_of(failure, record, recorded)

    def hand_over(self, record: RecordBatch) -> torch.Tensor:
        """Returns the values of finished records, on the destination."""
        making: _Making = record.under_way
        try:
            made = making.collect(record)
        finally:
            making.let_go(record)
        if record.single is not None:
            kind, strides = record.single
            made = made.as_strided(record.shape, strides).data  # no view, of nothing
            if kind is torch.Tensor:
                return made
            made = made.as_subclass(kind)
            return made.pin_memory() if made.is_pinned() else made  # itself, in the class that is left of a pinned one
        return made if len(record.shape) == made.ndim else made.view(record.shape).data

    def drop(self, recorded: RecordedBatch) -> None:
        """Gives up the records of a batch that is not handed out."""
        for making in _makings_of(recorded):
            making.engine.native.cancel(making.flight)
            for record in making.records:
                if record.under_way is making:
                    making.let_go(record)

    def close(self) -> None:
        """Ends the threads of each engine once none of its batches is in flight. An iterator that goes on gets engines
        that end as soon as they have nothing to do."""
        self._is_closed = True
        self.rest()

    def rest(self) -> None:
        """The same, of the engines that there are now."""
        for key in list(self._engines):
            self._remove(key)

    def _engine_of(self, records: list[RecordBatch]) -> _Engine:
        key = self.pins, *(_key_of(one) for one in records)
        found = self._engines.get(key)
        if found is None or not found.native.has_current_limit() or found.native.closed:
            if found is not None:
                self._remove(key)
            self._make_room()
            found = self._engines[key] = self._new_engine(records)
        self._engines.move_to_end(key)
        return found

    def _make_room(self) -> None:
        """Ends the engines used longest ago that make no batch now, if there are many."""
        idle = [key for key, one in self._engines.items() if not one.in_flight]
        while len(self._engines) >= _MOST_ENGINES and idle:
            self._remove(idle.pop(0))

    def _remove(self, key: Any) -> None:
        engine = self._engines.pop(key)
        self._leaving.append(engine)
        engine.close()
        self._note_ended()

    def _note_ended(self) -> None:
        ended = [one for one in self._leaving if not one.in_flight]
        self._leaving = [one for one in self._leaving if one.in_flight]
        self._counted = sum_counters([self._counted, *(one.native.counters() for one in ended)])

    def counters(self) -> Counters:
        """Returns what was counted by all engines so far."""
        self._note_ended()
        there = (*self._leaving, *self._engines.values())
        return sum_counters([self._counted, *(one.native.counters() for one in there)])

    def _new_engine(self, records: list[RecordBatch]) -> _Engine:
        recipe, under_way = _recipe_of(records), RecordsUnderWay()
        slots_kept = AHEAD + (2 if self._destination.way == "memory" else 1)  # the program has one batch
        make: Any = functools.partial(
            ViewsEngine if recipe.views else make_engine,
            recipe,
            threads=self._threads,
            slots_kept=slots_kept,
            pin=self.pins,
            decoding=Decoding("pillow", functools.partial(RecordLane, under_way=under_way)),
        )
        native = make([one.layout for one in records]) if recipe.views else make(records[0].layout, self._destination)
        assert isinstance(native, ImageEngine)
        if self._helpers and not recipe.views and recipe.channels in (1, 3):
            asked = PlanRequests(native, lambda batch: [_plan_of(one) for one in under_way.find(batch)])
            add_helpers(native, addresses_of(self._helpers), self._threads, asked, self._timeout)
        return _Engine(native, under_way)


def _makings_of(recorded: RecordedBatch) -> list[_Making]:
    """Returns what makes the records of a batch, those that are under way, in the order of their first records."""
    return list(dict.fromkeys(one.under_way for one in recorded.records if one.under_way is not None))


def _recipe_of(records: list[RecordBatch]) -> Recipe:
    """Returns the recipe, without steps, whose samples are the images of some records, or whose views are."""
    recipes = []
    for one in records:
        channels, height, width = one.shape[-3:]
        table = torch.from_numpy(one.table.copy())
        erased = torch.from_numpy(one.erased.copy()) if len(one.erased) else None
        recipes.append(Recipe((), (), height, width, channels, Pointwise((), table.dtype), table, erased=erased))
    first = recipes[0]
    return first if len(recipes) == 1 else replace(first, views=tuple(recipes))


def _key_of(record: RecordBatch) -> tuple[object, ...]:
    table, erased = record.table, record.erased
    return record.layout, *record.shape[-3:], table.dtype.str, table.tobytes(), erased.tobytes()


def _plan_of(image: ImageRecord) -> GivenPlan:
    return image.size, {"stages": image.stages, "last": image.last, "erased": image.erased}


def _error_of(failure: Failure, record: RecordBatch, recorded: RecordedBatch) -> BaseException:
    """Returns what torch's DataLoader raises for a failed sample, with a note of what failed where."""
    image, making = record.images[failure.sample], record.under_way
    where = image.name or f"{image.nbytes} bytes in memory"
    error = failure.original or make_native_cause(failure.stage, failure.reason, failure.errno, where)
    if recorded.worker is not None:
        wrapped = making.engine.under_way.find_error(making.flight.batch.id, failure.sample)
        error = _error_of_worker(error, wrapped, recorded.worker)
    sample = recorded.name_sample(failure.sample, record)
    add_note(error, printable(f"{failure.stage}: {sample} ({where}): {failure.reason}"), "")
    return error


def _error_of_worker(error: BaseException, wrapped: ExceptionWrapper | None, worker: int) -> BaseException:
    """Returns an error as torch's DataLoader raises it where a worker process has raised it.

    Args:
        wrapped: what was kept of it where it was raised; None: nothing has raised it.
    """
    if wrapped is None:
        try:
            raise error
        except BaseException as raised:
            wrapped = wrap_error(raised)
    try:
        raise_as_workers(wrapped, worker)
    except BaseException as raised:
        return without_frames(raised)
