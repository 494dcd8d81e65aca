"""Engine for batches whose samples have different recipes of one output: an engine for each, which makes its samples in
their places of the batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core
from headrace._engine.composite_engine import CompositeEngine
from headrace._engine.counters.counters import Counters, sum_counters
from headrace._engine.engine import Engine, Failure, Flight
from headrace._engine.image_engine import ImageEngine

Int64s = npt.NDArray[np.int64]


class _Some(NamedTuple):
    """The samples of a batch that one engine makes.

    Attributes:
        samples: their numbers in what was submitted, ascending, int64 (n,).
    """

    engine: ImageEngine
    flight: Flight
    samples: Int64s


@dataclass(eq=False)
class JoinedFlight(Flight):
    """A batch in flight that several engines make.

    Attributes:
        memory: of the batch.
    """

    batch: core.Batch = field(init=False, repr=False)
    memory: torch.Tensor | None = None
    some: list[_Some] = field(default_factory=list)


class JoinedEngine(CompositeEngine):
    """Submits each sample to the engine of its recipe.

    Args:
        engines: of recipes with outputs of one shape and dtype.
        columns: for each engine the columns of the draws that it reads.
        engine_of: returns the number of the engine of each row, int64 (n,).
    """

    def __init__(
        self, engines: Sequence[ImageEngine], columns: Sequence[Int64s], engine_of: Callable[[Int64s], Int64s]
    ) -> None:
        super().__init__()
        self._engines, self._columns, self._engine_of = list(engines), list(columns), engine_of
        self.endings = [one for engine in self._engines for one in engine.endings]

    def members(self) -> list[Engine]:
        return list(self._engines)

    def submit(self, table: core.BlobTable, rows: Int64s, draws: npt.NDArray[np.float64]) -> Flight:
        if self._closed:
            raise RuntimeError("the loader was closed")
        flight = JoinedFlight(memory=self._engines[0].new_memory(len(rows)))
        return self._begin(flight, np.arange(len(rows)), table, rows, draws)

    def repair(
        self, flight: Flight, places: list[int], table: core.BlobTable, rows: Int64s, draws: npt.NDArray[np.float64]
    ) -> Flight:
        repaired = JoinedFlight(memory=self._of(flight).memory)
        return self._begin(repaired, np.asarray(places, dtype=np.int64), table, rows, draws)

    def _begin(
        self,
        flight: JoinedFlight,
        places: Int64s,
        table: core.BlobTable,
        rows: Int64s,
        draws: npt.NDArray[np.float64],
    ) -> JoinedFlight:
        assert flight.memory is not None
        which = self._engine_of(rows)
        try:
            for number in np.unique(which).tolist():
                engine, samples = self._engines[number], np.flatnonzero(which == number)
                drawn = draws[np.ix_(samples, self._columns[number])]
                made = engine.submit_into(flight.memory, places[samples].tolist(), table, rows[samples], drawn)
                flight.some.append(_Some(engine, made, samples))
        except BaseException:  # such as an interrupt: no thread may write to memory that is let go
            self.cancel(flight)
            raise
        return flight

    @staticmethod
    def _of(flight: Flight) -> JoinedFlight:
        assert isinstance(flight, JoinedFlight)
        return flight

    def wait(self, flight: Flight, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        some = self._of(flight).some
        return all(one.engine.wait(one.flight, max(0.0, deadline - time.monotonic())) for one in some)

    def failures(self, flight: Flight) -> list[Failure]:
        found = [
            Failure(int(one.samples[failure.sample]), *_values_after_sample(failure))
            for one in self._of(flight).some
            for failure in one.engine.failures(one.flight)
        ]
        return sorted(found, key=lambda failure: failure.sample)

    def tensor(self, flight: Flight, places: list[int] | None = None) -> torch.Tensor:
        joined = self._of(flight)
        assert joined.memory is not None
        for one in joined.some:
            one.flight.batch.release()
        if places is None:
            return joined.memory
        chosen = self._engines[0].new_memory(len(places))
        return torch.index_select(joined.memory, 0, torch.tensor(places, device="cpu"), out=chosen)

    def single(self, batch: Any) -> object:
        return self._engines[0].single(batch)

    def cancel(self, flight: Flight) -> None:
        for one in self._of(flight).some:
            one.engine.cancel(one.flight)

    def counters(self) -> Counters:
        return sum_counters(engine.counters() for engine in self._engines)

    @property
    def engines(self) -> int:
        return len(self._engines)

    def makes(self, product: object) -> bool:
        if self.closed or not isinstance(product, Mapping) or len(product) != len(self._engines):
            return False
        return all(engine.makes(one) for engine, one in zip(self._engines, product.values(), strict=True))


def _values_after_sample(failure: Failure) -> tuple[Any, ...]:
    return failure.stage, failure.reason, failure.errno, failure.original, failure.part
