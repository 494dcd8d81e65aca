"""Engine for samples of several parts: one engine for each part, which makes it for the whole batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._engine.columns_engine import GatherEngine
from headrace._engine.counters.counters import Counters, summed
from headrace._engine.destination import Destination
from headrace._engine.device_engine import moved
from headrace._engine.engine import Engine, Failure, Flight
from headrace._engine.worker_info import WorkerValues

#: Returns a sentence about images of different (height, width) in one sample; "" if all have the same.
Unequal = Callable[[Mapping[str, tuple[int, int]]], str]


@dataclass(eq=False)
class StackedFlight(Flight):
    """A batch of all parts in flight.

    Attributes:
        parts: the flight of each part.
        made: what their engines handed over. They do so once, but memory for a later part may be short.
    """

    batch: core.Batch = field(init=False, repr=False)
    parts: dict[str, Flight] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)


class StackedEngine(Engine):
    """Submits each batch to all engines, and puts together what they make.

    Args:
        parts: the engines by part.
        columns: for each part the columns of the draws that it reads.
        destination: where the batches end; tensors of gathered rows are moved there.
        unequal: where the images of a sample share a geometry: compares their sizes.
    """

    def __init__(
        self,
        parts: Mapping[str, Engine],
        columns: Mapping[str, npt.NDArray[np.int64]],
        destination: Destination,
        unequal: Unequal | None = None,
    ) -> None:
        self._parts, self._columns = dict(parts), dict(columns)
        self._destination, self._unequal = destination, unequal
        self._closed = False
        self.endings = [one for engine in self._parts.values() for one in engine.endings]

    def _images(self) -> dict[str, Engine]:
        return {name: one for name, one in self._parts.items() if not isinstance(one, GatherEngine)}

    def work_as(self, workers: WorkerValues) -> None:
        for engine in self._parts.values():
            engine.work_as(workers)

    def read_metadata(self, metadata: Callable[[int], dict[Any, Any]]) -> None:
        """Sets the function that returns, for a sample, the function that reads each image's metadata, by part."""
        for name, engine in self._images().items():
            engine.read_metadata(lambda index, name=name: metadata(index)[name]())  # type: ignore[misc]

    def check_stream(self) -> None:
        for engine in self._parts.values():
            engine.check_stream()

    def submit(self, table: Any, rows: npt.NDArray[Any], draws: npt.NDArray[Any]) -> Flight:
        """Starts a batch.

        Args:
            table: the tables of all parts, and the row of each sample in them; see `samples.source.Tables`.
        """
        return self._begun(table, rows, draws, lambda name, engine, where: engine.submit(table.parts[name], *where))

    def repair(
        self, flight: Flight, places: list[int], table: Any, rows: npt.NDArray[Any], draws: npt.NDArray[Any]
    ) -> Flight:
        """Starts to make other samples in some `places` of a complete batch, in all parts."""
        parts = _parts(flight)
        return self._begun(
            table,
            rows,
            draws,
            lambda name, engine, where: engine.repair(parts[name], places, table.parts[name], *where),
        )

    def _begun(
        self,
        table: Any,
        rows: npt.NDArray[Any],
        draws: npt.NDArray[Any],
        begin: Callable[[str, Engine, tuple[Any, Any]], Flight],
    ) -> Flight:
        if self._closed:
            raise RuntimeError("the loader was closed")
        own = rows if table.rows is None else table.rows[rows]
        begun = StackedFlight()
        try:
            for name, engine in self._parts.items():
                begun.parts[name] = begin(name, engine, (own, draws[:, self._columns[name]]))
        except BaseException:
            self.cancel(begun)
            raise
        return begun

    def wait(self, flight: Flight, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        return all(
            self._parts[name].wait(one, max(0.0, deadline - time.monotonic())) for name, one in _parts(flight).items()
        )

    def failures(self, flight: Flight) -> list[Failure]:
        """Returns the failed samples in order, each with the first of its parts that failed."""
        found: dict[int, Failure] = {}
        for name, one in _parts(flight).items():
            for failure in self._parts[name].failures(one):
                found.setdefault(failure.sample, replace(failure, part=name))
        for failure in self._unequal_sizes(_parts(flight)):
            found.setdefault(failure.sample, failure)
        return [found[sample] for sample in sorted(found)]

    def _unequal_sizes(self, flights: dict[str, Flight]) -> Iterator[Failure]:
        """Yields a failure for each sample whose images have different sizes; that of a failed image is (0, 0)."""
        if self._unequal is None:
            return
        sizes = {name: flights[name].batch.sizes for name in self._images()}
        first = next(iter(sizes.values()))
        differ = np.any([(one != first).any(axis=1) for one in sizes.values()], axis=0)
        for sample in np.flatnonzero(differ).tolist():
            named = {name: (int(one[sample, 0]), int(one[sample, 1])) for name, one in sizes.items()}
            yield Failure(sample, "plan", self._unequal(named), 0, None)

    def tensor(self, flight: Flight, places: list[int] | None = None) -> Any:
        """Returns what each engine made, by part."""
        assert isinstance(flight, StackedFlight)
        for name, one in flight.parts.items():
            if name not in flight.made:
                flight.made[name] = self._parts[name].tensor(one, places)
        images = self._images()
        return {name: part if name in images else self.move_targets(part) for name, part in flight.made.items()}

    def single(self, batch: Any) -> Any:
        return {name: self._parts[name].single(one) for name, one in batch.items()}

    def move_targets(self, targets: Any) -> Any:
        return targets if self._destination.way == "memory" else moved(targets, self._destination.device)

    def cancel(self, flight: Flight) -> None:
        for name, one in _parts(flight).items():
            self._parts[name].cancel(one)

    def counters(self) -> Counters:
        """Returns the counters of the images' engines; those of gathered rows if there is no image."""
        return summed(one.counters() for one in (self._images() or self._parts).values())

    def resize(self, threads: int) -> None:
        for engine in self._parts.values():
            engine.resize(threads)

    def place(self, cores: Sequence[int]) -> None:
        for engine in self._parts.values():
            engine.place(cores)

    @property
    def engines(self) -> int:
        return len(self._parts)

    @property
    def slots(self) -> int:
        return sum(engine.slots for engine in self._parts.values())

    @property
    def closed(self) -> bool:
        return self._closed

    def fits(self, recipe: Any, *, persists: bool = False) -> bool:
        """Returns whether this engine can be used for another epoch of parts with these products, by name."""
        return (
            not self.closed
            and list(recipe) == list(self._parts)
            and all(self._parts[name].fits(one, persists=persists) for name, one in recipe.items())
        )

    def serves_in_this_thread(self) -> bool:
        return any(engine.serves_in_this_thread() for engine in self._parts.values())

    def abandon_steps(self) -> None:
        for engine in self._parts.values():
            engine.abandon_steps()

    def close(self) -> None:
        self._closed = True
        for engine in self._parts.values():
            engine.close()


def _parts(flight: Flight) -> dict[str, Flight]:
    assert isinstance(flight, StackedFlight)
    return flight.parts
