"""Queue of the batches of one epoch that are begun and not yet handed out, in order.

In the main thread a signal handler may raise after any function call, because CPython checks for signals there. So
state that belongs together is stored by assignments without a call between them, and every method can be called again
after an interrupt at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from headrace.base.recording import span
from headrace.delivery.begun import Begun, Results
from headrace.engine.engine import Engine
from headrace.epochs.delivery import Delivery, settle
from headrace.epochs.order import OrderedBatch
from headrace.epochs.state import Progress
from headrace.randomness.draws import Draws
from headrace.streams.source import StreamTable

# Errors after which the batch stays the next one: memory may be available when it is requested again.
MAY_PASS = (MemoryError, torch.OutOfMemoryError)


class Line:
    """Begins batches in order and assigns each to one taker at a time.

    All methods except `leave` and `cancel` must be called under the iterator's lock.

    Args:
        table: where the samples lie; what the engine's `submit` takes.
        ahead: number of batches to begin beyond the one that is due; may be changed.
        submitted: called with the results, yet to be awaited, of each batch that is submitted.
        holds: tells whether the dataset has the samples of a batch as when the epoch began; None: it is not asked.
    """

    def __init__(
        self,
        table: Any,
        engine: Engine,
        order: Iterator[OrderedBatch],
        draws: Draws,
        progress: Progress,
        ahead: int,
        submitted: Callable[[Results], None],
        holds: Callable[[OrderedBatch], bool] | None = None,
    ) -> None:
        self._holds = holds
        self._table, self._engine, self._progress, self.ahead = table, engine, progress, ahead
        self._submitted = submitted
        # Most batches that `fill` begins beyond the one that is due; None: `ahead`. The sampler of a stream waits for
        # the bytes of each batch that it names, and the first batch is not to wait for those behind it.
        self._reach = 0 if isinstance(table, StreamTable) else None
        self._line: tuple[Begun, ...] = ()
        self._begin(order, draws)

    def _begin(self, order: Iterator[OrderedBatch], draws: Draws) -> None:
        self._order, self._draws = order, draws
        self._named: OrderedBatch | None = None  # yielded by the order, not yet in the line
        self._number = self._progress.position  # number of the next batch that the order yields
        self._error: Exception | None = None  # raised by the sampler; raised again once the batches before it are out
        self._ended = False
        self.asking = False  # whether a call of next() on the order is in progress
        self.torn = False  # whether the sampler raised: batches after that have no known position in the order

    def begin_anew(self, order: Iterator[OrderedBatch]) -> None:
        """Cancels all batches and starts over with another order and the seed in `progress`."""
        self.cancel()
        self._begin(order, self._draws.with_seed(self._progress.seed))

    def fill(self) -> None:
        """Begins batches until the one that is due and `ahead` more are in the line; of a stream, two at a time."""
        progress = self._progress
        progress.settled, progress.deliveries = settle(progress.settled, progress.deliveries)
        self._line = tuple([one for one in self._line if not one.delivery.settled])
        with span("submit"):
            ahead = self.ahead if self._reach is None else min(self._reach, self.ahead)
            while sum(one.taker is None for one in self._line) <= ahead:
                begun = self._next_begun()
                if begun is None:
                    return
                self._try_to_submit(begun)

    def _next_begun(self) -> Begun | None:
        """Appends the order's next batch to the line and returns it; None if there is none."""
        if self._named is None:
            if self._ended or self._error is not None:
                return None
            self.asking = True
            try:
                for self._named in self._order:  # noqa: B020 - stored without a call, so no interrupt loses it
                    break
                else:
                    self._ended = True
            except Exception as error:
                self._error, self.torn, self.asking = error, True, False
                return None
            self.asking = False
            if self._named is None:
                return None
        begun = Begun(self._named, Delivery(self._number))
        line, deliveries = (*self._line, begun), self._progress.deliveries
        if not self.torn:
            deliveries = (*deliveries, begun.delivery)
        self._line, self._progress.deliveries, self._number, self._named = line, deliveries, self._number + 1, None
        return begun

    def _try_to_submit(self, begun: Begun) -> None:
        """Submits the batch, which may wait for a device's staging memory.

        An error is kept and raised when the batch is due; after one of `MAY_PASS` the batch is submitted again then. A
        batch that only torch's way makes, or makes now, is left to it.
        """
        ordered = begun.ordered
        if ordered.is_other or (self._holds is not None and not self._holds(ordered)):
            begun.as_torch = True
            return
        try:
            self.submit(begun)
        except MAY_PASS:
            pass  # retried when the batch is due
        except Exception as error:  # for example samples of different sizes; raised when the batch is due
            begun.error = error.with_traceback(None)

    def submit(self, begun: Begun) -> Results:
        """Submits the batch to the engine; its results are yet to be awaited."""
        ordered = begun.ordered
        if begun.draws is None:
            begun.draws = self._draws.batch(self._progress.epoch, ordered.indices, ordered.occurrences)
        table = self._table.of(ordered.indices) if isinstance(self._table, StreamTable) else self._table
        flight = self._engine.submit(table, ordered.indices, begun.draws)
        results = begun.results = Results(flight, begun.delivery.number, ordered.indices)
        self._submitted(results)
        return results

    def take(self, taker: object) -> Begun | None:
        """Returns the batch that is due; None at the end. The taker owns it until it is settled or `leave` is called.

        Raises:
            Exception: the sampler raised it. It is raised once; then the sampler's iterator is asked again.
        """
        begun = next((one for one in self._line if one.taker is None), None)
        if begun is not None:
            begun.taker = taker
            self._reach = None if self._reach is None or self._reach >= self.ahead else self._reach + 1
        elif self._error is not None:
            raise self._error
        return begun

    @property
    def ended(self) -> bool:
        """Whether the order has no more batches."""
        return self._ended

    @property
    def busy(self) -> bool:
        """Whether a batch is not settled yet."""
        return any(not one.delivery.settled for one in self._line)

    def leave(self, taker: object, error: BaseException) -> None:
        """Called when the taker's ``next()`` raises. Its batch is passed over if the error belongs to that batch, as in
        torch's loader; otherwise it becomes the next batch again. May be called in any thread."""
        if error is self._error:
            self._error = None
        of_the_batch = isinstance(error, Exception) and not isinstance(error, MAY_PASS)
        for begun in self._line:
            if begun.taker is not taker or begun.delivery.settled:
                continue
            if of_the_batch and (begun.complete or error is begun.error):
                begun.delivery.passed = True
                begun.forget()
                continue
            if begun.complete and not isinstance(error, Exception):  # an interrupt: results may be incomplete
                begun.forget()
            begun.complete, begun.taker = False, None

    def cancel(self) -> None:
        """Cancels all batches in the line. May be called in any thread."""
        line, self._line = self._line, ()
        for begun in line:
            if begun.results is not None:
                self._engine.cancel(begun.results.flight)
