"""Engines that consist of engines: what all of them do alike, and a batch of which each makes a part."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._engine.counters.counters import Counters, sum_counters
from headrace._engine.engine import Engine, Failure, Flight
from headrace._engine.lanes.call_lane import RowMetadata
from headrace._engine.lanes.worker_info import WorkerValues

Part = TypeVar("Part")


class CompositeEngine(Engine):
    """Engines with threads and memory of their own."""

    def __init__(self) -> None:
        self._closed = False

    @abstractmethod
    def members(self) -> list[Engine]:
        """Returns the engines that there are now; another thread may add one."""

    def set_metadata_reader(self, metadata: RowMetadata) -> None:
        for engine in self.members():
            engine.set_metadata_reader(metadata)

    def work_as(self, workers: WorkerValues) -> None:
        for engine in self.members():
            engine.work_as(workers)

    def check_stream(self) -> None:
        for engine in self.members():
            engine.check_stream()

    def counters(self) -> Counters:
        return sum_counters(engine.counters() for engine in self.members())

    def resize(self, threads: int) -> None:
        for engine in self.members():
            engine.resize(threads)

    def bind_threads(self, cores: Sequence[int]) -> None:
        for engine in self.members():
            engine.bind_threads(cores)

    @property
    def slots(self) -> int:
        return sum(engine.slots for engine in self.members())

    @property
    def closed(self) -> bool:
        return self._closed

    def serves_in_this_thread(self) -> bool:
        return any(engine.serves_in_this_thread() for engine in self.members())

    def abandon_steps(self) -> None:
        for engine in self.members():
            engine.abandon_steps()

    def has_current_limit(self) -> bool:
        return all(engine.has_current_limit() for engine in self.members())

    def close(self) -> None:
        self._closed = True
        for engine in self.members():
            engine.close()


@dataclass(eq=False)
class PartsFlight(Flight, Generic[Part]):
    """A batch in flight of which several engines make a part each.

    Attributes:
        parts: the flight of each part.
        made: what their engines handed over. They do so once, but memory for a later part may be short.
    """

    batch: core.Batch = field(init=False, repr=False)
    parts: dict[Part, Flight] = field(default_factory=dict)
    made: dict[Part, object] = field(default_factory=dict)


class PartsEngine(CompositeEngine, Generic[Part]):
    """Submits each batch to all of its engines.

    Args:
        parts: the engines by part.
    """

    #: Makes the flight of a batch.
    _new_flight: Callable[[], PartsFlight[Part]] = PartsFlight

    def __init__(self, parts: Mapping[Part, Engine]) -> None:
        super().__init__()
        self._parts = dict(parts)
        self.endings = [one for engine in self._parts.values() for one in engine.endings]

    def members(self) -> list[Engine]:
        return list(self._parts.values())

    @abstractmethod
    def _select_part(
        self, part: Part, table: object, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]
    ) -> tuple[object, npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Returns the table, rows and draws of a part."""

    def submit(self, table: object, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        return self._begin_parts(lambda part, engine: engine.submit(*self._select_part(part, table, rows, draws)))

    def repair(
        self,
        flight: Flight,
        places: list[int],
        table: object,
        rows: npt.NDArray[np.int64],
        draws: npt.NDArray[np.float64],
    ) -> Flight:
        parts = self._flights(flight)
        return self._begin_parts(
            lambda part, engine: engine.repair(parts[part], places, *self._select_part(part, table, rows, draws))
        )

    def _begin_parts(self, begin: Callable[[Part, Engine], Flight]) -> Flight:
        if self._closed:
            raise RuntimeError("the loader was closed")
        begun = self._new_flight()
        try:
            for part, engine in self._parts.items():
                begun.parts[part] = begin(part, engine)
        except BaseException:  # memory of a device may be short: the parts that were begun are given up
            self.cancel(begun)
            raise
        return begun

    @staticmethod
    def _flights(flight: Flight) -> dict[Part, Flight]:
        assert isinstance(flight, PartsFlight)
        return flight.parts

    def wait(self, flight: Flight, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        return all(
            self._parts[part].wait(one, max(0.0, deadline - time.monotonic()))
            for part, one in self._flights(flight).items()
        )

    def failures(self, flight: Flight) -> list[Failure]:
        """Returns the failed samples in order, each with the failure of the first of its parts that failed."""
        found: dict[int, Failure] = {}
        for part, one in self._flights(flight).items():
            for failure in self._parts[part].failures(one):
                found.setdefault(failure.sample, self._name_failure(failure, part))
        return [found[sample] for sample in sorted(found)]

    def _name_failure(self, failure: Failure, part: Part) -> Failure:
        """Returns a failure with the name of its part, where parts have names."""
        return failure

    def collect_parts(self, flight: Flight, places: list[int] | None) -> dict[Part, object]:
        """Returns what each engine made, by part."""
        assert isinstance(flight, PartsFlight)
        for part, one in flight.parts.items():
            if part not in flight.made:
                flight.made[part] = self._parts[part].tensor(one, places)
        return flight.made

    def cancel(self, flight: Flight) -> None:
        for part, one in self._flights(flight).items():
            self._parts[part].cancel(one)
