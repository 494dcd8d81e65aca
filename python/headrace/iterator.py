"""One pass over the loader's batches: keeps a few in flight and hands them out in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import faults
from headrace.draws import Draws
from headrace.engine import Engine, Flight
from headrace.order import OrderedBatch
from headrace.sources import BlobDataset

if TYPE_CHECKING:
    from headrace._native import core
    from headrace.state import Progress

_FOREVER_S = 1e9


@dataclass(frozen=True)
class IteratorOptions:
    """What the loader asks of an iterator."""

    depth: int  # batches in flight beyond the one in use; 0: made when asked for
    batched: bool  # False: one sample at a time, without a batch axis
    timeout_s: float  # 0: none
    on_error: str
    max_errors: int | None


@dataclass
class _Begun:
    ordered: OrderedBatch
    draws: np.ndarray[Any, Any]
    targets: Any
    flight: Flight


class NativeIterator:
    """Iterator over ``images`` or ``(images, targets)``; `close` (or dropping it) gives up what is in flight."""

    def __init__(
        self,
        source: BlobDataset,
        table: core.BlobTable,
        engine: Engine,
        order: Iterator[OrderedBatch],
        draws: Draws,
        progress: Progress,
        options: IteratorOptions,
        *,
        owns_engine: bool,
    ) -> None:
        self._source, self._table, self._engine, self._order = source, table, engine, order
        self._draws, self._progress, self._options = draws, progress, options
        self._owns_engine = owns_engine
        self._flying: deque[_Begun] = deque()
        self._faults = faults.FaultLog(options.on_error, options.max_errors)
        self._finished = False

    def __iter__(self) -> NativeIterator:
        return self

    def __next__(self) -> Any:
        if self._finished:
            raise StopIteration
        begin = time.perf_counter_ns()
        while True:
            self._begin_batches(self._options.depth + 1)
            if not self._flying:
                self._finish()
                raise StopIteration
            begun = self._flying.popleft()
            self._wait(begun.flight)
            self._begin_batches(self._options.depth)
            self._progress.position += 1
            batch = self._deliver(begun)
            if batch is not None:
                break
        self._progress.waited_ns += time.perf_counter_ns() - begin
        return batch

    def _begin_batches(self, limit: int) -> None:
        while len(self._flying) < limit and (ordered := next(self._order, None)) is not None:
            draws = self._draws.batch(self._progress.epoch, ordered.indices, ordered.occurrences)
            flight = self._engine.submit(self._table, ordered.indices, draws)
            targets = self._source.targets_of(ordered.indices) if self._source.has_targets else None
            self._flying.append(_Begun(ordered, draws, targets, flight))

    def _wait(self, flight: Flight) -> None:
        timeout = self._options.timeout_s
        if not self._engine.wait(flight, timeout or _FOREVER_S):
            self.close()
            if self._engine.closed and not timeout:
                raise RuntimeError("the loader was closed while a batch was awaited")
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")

    def _deliver(self, begun: _Begun) -> Any:
        """The batch; None if none of its samples could be made."""
        failures = self._engine.failures(begun.flight)
        places: list[int] | None = None
        targets = begun.targets
        if failures:
            indices = begun.ordered.indices
            errors = [faults.describe(one, int(indices[one.sample]), self._source) for one in failures]
            if self._options.on_error == "raise":
                raise errors[0]
            self._faults.add(errors)
            self._progress.errors.extend(errors)
            failed = [one.sample for one in failures]
            if self._options.on_error == "skip":
                places = sorted(set(range(len(indices))) - set(failed))
                if not places:
                    return None
                indices = indices[places]
            else:
                indices = self._replace(begun, failed)
            targets = self._source.targets_of(indices) if self._source.has_targets else None
        images = self._engine.tensor(begun.flight, places)
        if not self._options.batched:
            images = images[0]
            if targets is not None:
                targets = self._source.target(int(begun.ordered.indices[0]))
        return images if targets is None else (images, targets)

    def _replace(self, begun: _Begun, places: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Makes the next samples of the dataset in place of failed ones, each with the failed one's draws."""
        indices = begun.ordered.indices.copy()
        for _ in range(len(self._source)):
            indices[places] = (indices[places] + 1) % len(self._source)
            flight = self._engine.repair(begun.flight, places, self._table, indices[places], begun.draws[places])
            self._wait(flight)
            failures = self._engine.failures(flight)
            errors = [faults.describe(one, int(indices[places[one.sample]]), self._source) for one in failures]
            self._faults.add(errors)
            self._progress.errors.extend(errors)
            places = [places[one.sample] for one in failures]
            if not places:
                return indices
        raise RuntimeError("no sample of the dataset could be made")

    def _finish(self) -> None:
        self._progress.finish()
        self.close()
        self._faults.warn(self._progress.epoch)

    def __len__(self) -> int:
        return self._progress.batches

    def close(self) -> None:
        """Gives up the batches in flight; the iterator is then exhausted. Idempotent."""
        self._finished = True
        for begun in self._flying:
            self._engine.cancel(begun.flight)
        self._flying.clear()
        if self._owns_engine:
            self._engine.close()

    def __del__(self) -> None:
        if hasattr(self, "_finished"):  # not where __init__ failed
            self.close()
