"""One pass over the loader's batches: keeps a few in flight and hands them out in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import default_convert

from headrace import faults
from headrace._native import core
from headrace.draws import Draws
from headrace.engine import Engine, Flight
from headrace.errors import SampleError
from headrace.order import OrderedBatch
from headrace.recording import span
from headrace.sources import BlobDataset

if TYPE_CHECKING:
    from headrace.state import Progress

_FOREVER_S = 1e9
# Whose batch stays the next one: there may be memory when it is asked for again.
_MAY_PASS = (MemoryError, torch.OutOfMemoryError)


@dataclass(frozen=True)
class IteratorOptions:
    """What the loader asks of an iterator."""

    depth: int  # batches in flight beyond the one in use; 0: made when asked for
    batched: bool  # False: one sample at a time, without a batch axis
    timeout_s: float  # 0: none
    on_error: str
    max_errors: int | None
    ranks: int = 1  # that take their steps together
    quiet: bool = False  # no warning about samples skipped or replaced
    out: Callable[[Any, int], Any] | None = None  # called on each batch and its number in the epoch


@dataclass
class _Begun:
    """A batch on its way; without a flight and an error it is still to be begun."""

    ordered: OrderedBatch
    draws: np.ndarray[Any, Any] | None = None
    flight: Flight | None = None
    error: Exception | None = None  # why it cannot be begun
    errors: list[SampleError] | None = None  # of its samples that could not be made; None: nobody has looked
    failed: list[int] = field(default_factory=list)  # where these are
    images: torch.Tensor | None = None  # handed over by the engine
    indices: Any = None  # of the samples in them, int64


class NativeIterator:
    """Iterator over ``images`` or ``[images, targets]``; `close` (or dropping it) gives up what is in flight.

    A sample that cannot be made raises when its batch is due, and the batches behind it can still be had, as in torch.
    Ctrl-C, a timeout and too many errors close the iterator.
    """

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
        renew: Callable[[Progress], Iterator[OrderedBatch] | None] | None = None,
    ) -> None:
        self._source, self._table, self._engine, self._order = source, table, engine, order
        self._draws, self._progress, self._options = draws, progress, options
        self._owns_engine = owns_engine
        self._renew = renew  # until the first batch is asked for
        self._flying: deque[_Begun] = deque()
        self._order_error: Exception | None = None  # of the sampler; raised when the batches before it are out
        self._taken = progress.position  # batches of the epoch that are behind us
        self._faults = faults.FaultLog(options.on_error, options.max_errors, progress)
        self._exhausted = self._closed = False
        self._start_ns = time.perf_counter_ns()
        if options.depth > 0:
            self._begin_batches()

    def __iter__(self) -> NativeIterator:
        return self

    def __next__(self) -> Any:
        begin = time.perf_counter_ns()
        self._progress.lasted_ns = begin - self._start_ns
        try:
            self._engine.check_stream()
            self._heed_the_epoch()
            batch = None
            while batch is None:  # none of its samples could be made
                batch = self._handed_out(self._next_begun())
        except BaseException as error:
            if not isinstance(error, Exception):  # Ctrl-C: where it struck, a batch may be lost
                self.close()
            raise
        self._progress.position = self._taken
        if self._options.out is not None:
            with span("out_transform"):
                batch = self._options.out(batch, self._progress.number(self._taken - 1))
        end = time.perf_counter_ns()
        core.add_span("__next__", begin, end)
        self._progress.waited_ns += end - begin
        self._progress.lasted_ns = end - self._start_ns
        return batch

    def _heed_the_epoch(self) -> None:
        """Begins anew where a sampler was told another epoch since, and no batch was asked for yet."""
        renew, self._renew = self._renew, None
        order = None if renew is None or self._closed else renew(self._progress)
        if order is None:
            return
        self._cancel()
        self._order, self._order_error = order, None
        self._draws = self._draws.of_seed(self._progress.seed)
        self._taken = self._progress.position

    def _next_begun(self) -> _Begun:
        """The next batch, complete; the ones behind it are in flight."""
        if self._closed and not self._exhausted:
            raise RuntimeError("this iterator was closed before its end; iter(loader) makes a new one")
        self._begin_batches()
        if not self._flying:
            if self._order_error is not None:
                raise self._order_error
            self._finish()
            raise StopIteration
        begun = self._flying[0]
        if begun.error is None:
            self._wait(begun.flight or self._submit(begun))
        return begun

    def _handed_out(self, begun: _Begun) -> Any:
        """The batch, which is no longer the next one then; None if none of its samples could be made."""
        try:
            if begun.error is not None:
                raise begun.error
            batch = self._deliver(begun)
        except _MAY_PASS:
            raise
        except BaseException:
            self._leave(begun)
            raise
        self._leave(begun)
        return batch

    def _leave(self, begun: _Begun) -> None:
        self._taken += 1
        if self._flying and self._flying[0] is begun:  # not where the iterator was closed meanwhile
            self._flying.popleft()

    def _begin_batches(self) -> None:
        """Up to the one that is due and as many behind it as the loader is to be ahead."""
        with span("submit"):
            while len(self._flying) <= self._options.depth and not self._exhausted and self._order_error is None:
                try:
                    ordered = next(self._order, None)
                except Exception as error:
                    self._order_error = error
                    return
                if ordered is None:
                    return
                self._flying.append(self._begun(ordered))

    def _begun(self, ordered: OrderedBatch) -> _Begun:
        begun = _Begun(ordered)
        try:
            self._submit(begun)
        except _MAY_PASS:
            pass  # it is tried again when it is due
        except Exception as error:  # samples that do not make a batch, say: said when it is due
            begun.error = error.with_traceback(None)
        return begun

    def _submit(self, begun: _Begun) -> Flight:
        ordered = begun.ordered
        if begun.draws is None:
            begun.draws = self._draws.batch(self._progress.epoch, ordered.indices, ordered.occurrences)
        begun.flight = self._engine.submit(self._table, ordered.indices, begun.draws)
        return begun.flight

    def _wait(self, flight: Flight) -> None:
        timeout = self._options.timeout_s
        try:
            with span("wait"):
                ready = self._engine.wait(flight, timeout or _FOREVER_S)
            if ready:
                return
            if self._engine.closed:
                raise RuntimeError("the loader was closed while a batch was awaited")
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        except BaseException:
            self._engine.cancel(flight)
            self._give_up(wait=False)  # for a step that may never end
            raise

    def _deliver(self, begun: _Begun) -> Any:
        """The batch; None if none of its samples could be made."""
        if begun.images is None:
            assert begun.flight is not None
            begun.indices = begun.ordered.indices
            places: list[int] | None = None
            if self._failed(begun) and self._options.on_error == "skip":
                places = sorted(set(range(len(begun.indices))) - set(begun.failed))
                if not places:
                    self._leave_out_batch()
                    return None
                begun.indices = begun.indices[places]
            elif begun.failed:
                begun.indices = self._replace(begun, begun.failed)
            begun.images = self._engine.tensor(begun.flight, places)  # once
        images, indices = begun.images, begun.indices
        if not self._source.has_targets:
            return images if self._options.batched else images[0]
        if self._options.batched:
            return [images, self._engine.place(self._source.targets_of(indices))]
        target = default_convert(self._source.target(int(indices[0])))  # type: ignore[no-untyped-call]
        return [images[0], self._engine.place(target)]

    def _failed(self, begun: _Begun) -> bool:
        """Whether samples of it could not be made and the loader goes on without them; looked at and noted once."""
        assert begun.flight is not None
        if begun.errors is None:
            failures = self._engine.failures(begun.flight)
            indices = begun.ordered.indices
            begun.errors = [faults.describe(one, int(indices[one.sample]), self._source) for one in failures]
            begun.failed = [one.sample for one in failures]
            if begun.errors and self._options.on_error == "raise":
                raise begun.errors[0]
            if begun.errors:
                self._note(begun.errors)
        return bool(begun.failed)

    def _replace(self, begun: _Begun, places: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Makes the next samples of the dataset in place of failed ones, each with the failed one's draws."""
        assert begun.flight is not None and begun.draws is not None
        indices = begun.ordered.indices.copy()
        for _ in range(len(self._source)):
            indices[places] = (indices[places] + 1) % len(self._source)
            flight = self._engine.repair(begun.flight, places, self._table, indices[places], begun.draws[places])
            self._wait(flight)
            failures = self._engine.failures(flight)
            self._note([faults.describe(one, int(indices[places[one.sample]]), self._source) for one in failures])
            places = [places[one.sample] for one in failures]
            if not places:
                return indices
        self._faults.give_up("no sample of the dataset could be made")

    def _leave_out_batch(self) -> None:
        if self._options.ranks > 1:
            try:
                self._faults.give_up(
                    "no sample of a batch could be made, and a rank that leaves out a batch would leave the others "
                    'waiting for it; use on_error="replace"'
                )
            finally:
                self.close()

    def _note(self, errors: list[SampleError]) -> None:
        try:
            self._faults.add(errors)
        except RuntimeError:  # too many
            self.close()
            raise

    def _finish(self) -> None:
        self._exhausted = True
        self._progress.finish()
        self.close()

    def __len__(self) -> int:
        if self._progress.batches < 0:
            raise TypeError("the sampler has no length, so the number of batches is not known")
        return self._progress.batches

    def close(self) -> None:
        """Gives up the batches in flight; asking for more raises RuntimeError. Idempotent."""
        self._give_up(wait=True)

    def _give_up(self, *, wait: bool) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._cancel()
        finally:
            if self._owns_engine:
                self._engine.close(wait=wait)
        if not self._options.quiet:
            self._faults.warn()

    def _cancel(self) -> None:
        while self._flying:
            flight = self._flying.popleft().flight
            if flight is not None:
                self._engine.cancel(flight)

    def __del__(self) -> None:
        if hasattr(self, "_closed"):  # not where __init__ failed
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError("an iterator over batches cannot be pickled; pickle the loader, or its state_dict()")
