"""Queue of the batches of one epoch that are begun and not yet handed out, in order.

In the main thread a signal handler may raise after any function call, because CPython checks for signals there. So
state that belongs together is stored by assignments without a call between them, and every method can be called again
after an interrupt at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import torch

from headrace._base.native import span
from headrace._base.safe_exceptions import is_instance, set_traceback
from headrace._engine.engine import Engine
from headrace._loading.autotune.budget import size_of_batch
from headrace._loading.epoch.checkpoint import Progress
from headrace._loading.epoch.delivery_tracker import Delivery, settle
from headrace._loading.epoch.order import OrderedBatch
from headrace._loading.native.pending_batch import Begun, Results
from headrace._recipe.draws.draws import Draws
from headrace.datasets.tar_stream.stream_source import StreamTable

# Errors after which the batch stays the next one: memory may be available when it is requested again.
MAY_PASS = (MemoryError, torch.OutOfMemoryError)


class BatchOrder(Protocol):
    """The batches of an epoch; see EpochOrder."""

    @property
    def ready(self) -> bool:
        """Whether a batch may be requested now."""

    @property
    def waiting(self) -> int:
        """Number of batches that were read and not requested yet."""

    @property
    def ended(self) -> bool:
        """Whether it is known that no batch follows."""

    def is_behind(self, delivered: int) -> bool:
        """Whether `read` would ask the sampler."""

    def read(self, delivered: int) -> None:
        """Reads the sampler ahead."""

    def __iter__(self) -> Iterator[OrderedBatch]: ...

    def __next__(self) -> OrderedBatch: ...


class BatchQueue:
    """Begins batches in order and assigns each to one taker at a time.

    All methods except `leave` and `cancel` must be called under the iterator's lock.

    Args:
        table: where the samples are; what the engine's `submit` takes.
        ahead: number of batches to begin beyond the one that is due; may be changed.
        submitted: called with the results, yet to be awaited, of each batch that is submitted.
        holds: tells whether the dataset has the samples of a batch as when the epoch began; None: it is not asked.
        most: number of batches in the queue up to which those that a later one has overtaken do not count as ahead.

    Attributes:
        most_bytes: of the batches ahead, each taken for as large as the largest that `note_size` was given; before
            the first, none is begun ahead. None: no limit.
    """

    def __init__(
        self,
        table: object,
        engine: Engine,
        order: BatchOrder,
        draws: Draws,
        progress: Progress,
        ahead: int,
        submitted: Callable[[Results], None],
        holds: Callable[[OrderedBatch], bool] | None = None,
        most: int = 0,
    ) -> None:
        self._holds, self._most = holds, most
        self.most_bytes: int | None = None
        self._largest = 0
        self._table, self._engine, self._progress, self.ahead = table, engine, progress, ahead
        self._submitted = submitted
        # Most batches that `fill` begins beyond the one that is due; None: `ahead`. The sampler of a stream waits for
        # the bytes of each batch that it names, and the first batch must not wait for later ones.
        self._reach = 0 if isinstance(table, StreamTable) else None
        self._batches: tuple[Begun, ...] = ()
        self._turns = 0  # calls of `take` that have got a batch
        self._begin(order, draws)

    def _begin(self, order: BatchOrder, draws: Draws) -> None:
        self._order, self._draws = order, draws
        self._named: OrderedBatch | None = None  # yielded by the order, not yet in the queue
        self._number = self._progress.position  # number of the next batch that the order yields
        self._out = -self._number  # added to a batch's number: batches that are out when it is, of this order
        self._foremost = -1  # highest number of a batch that was taken
        self._error: Exception | None = None  # raised by the sampler; raised again once the batches before it are out
        self._ended = False
        self.asking = False  # whether a call of next() on the order is in progress
        # Number of the first batch read after the sampler raised: from there on they have no known position in the
        # order. None: it has not raised.
        self._torn: int | None = None

    def restart(self, order: BatchOrder) -> None:
        """Cancels all batches and starts over with another order and the seed in `progress`."""
        self.cancel()
        self._begin(order, self._draws.with_seed(self._progress.seed))

    def fill(self) -> None:
        """Begins batches until the one that is due and `ahead` more are in the queue; of a stream, two at a time."""
        progress = self._progress
        progress.settled, progress.newest, progress.deliveries = settle(
            progress.settled, progress.newest, progress.deliveries
        )
        self._batches = tuple([one for one in self._batches if not one.delivery.settled])
        self._read()
        with span("submit"):
            ahead = self.ahead_now
            while self._order.ready and self._has_room(ahead):
                begun = self._next_begun()
                if begun is None:
                    return
                if begun.delivery.returned:  # before the state that the epoch resumes from
                    self._read()
                else:
                    self._try_to_submit(begun)

    @property
    def ahead_now(self) -> int:
        """Number of batches that may be begun beyond the one that is due."""
        ahead = self.ahead if self._reach is None else min(self._reach, self.ahead)
        if self.most_bytes is None:
            return ahead
        return min(ahead, self.most_bytes // self._largest) if self._largest else 0

    def note_size(self, batch: object) -> None:
        """Called with each batch that is handed out, or with the tensors that it was made of."""
        if self.most_bytes is not None:
            self._largest = max(self._largest, size_of_batch(batch), 1)

    def _has_room(self, ahead: int) -> bool:
        waiting = self.waiting
        overtaken = sum(one.delivery.number < self._foremost for one in waiting)
        return len(waiting) <= ahead or (len(waiting) < self._most and len(waiting) - overtaken <= ahead)

    def _read(self) -> None:
        """Reads the sampler as far as torch does when it hands out the batch that is due; after an error that left none
        in the queue, as far as it has by now.

        If the sampler raises, its error takes the place of that batch, as in torch.
        """
        waiting = self.waiting
        due = waiting[0] if waiting else None
        delivered = self._number - len(waiting) + self._out + (due is not None)
        if self._error is not None or not self._order.is_behind(delivered):
            return
        self.asking = True
        try:
            self._order.read(delivered)
        except Exception as error:
            read = self._number + self._order.waiting
            self._torn = read if self._torn is None else self._torn
            if due is None:
                self._error = error
            else:
                due.error = error
        self.asking = False

    def _next_begun(self) -> Begun | None:
        """Appends the order's next batch to the queue, unless it was returned before, and returns it; None if there is
        none."""
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
                torn = self._number if self._torn is None else min(self._number, self._torn)
                self._error, self._torn, self.asking = error, torn, False
                return None
            self.asking = False
            if self._named is None:
                return None
        begun = Begun(self._named, Delivery(self._number, self._number in self._progress.resumed))
        queued, deliveries = self._batches, self._progress.deliveries
        if not begun.delivery.returned:
            queued = (*queued, begun)
        if self._torn is None or self._number < self._torn:
            deliveries = (*deliveries, begun.delivery)
        self._batches, self._progress.deliveries, self._number, self._named = (
            queued,
            deliveries,
            self._number + 1,
            None,
        )
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
            set_traceback(error, None)
            begun.error = error

    def submit(self, begun: Begun) -> Results:
        """Submits the batch to the engine; its results are yet to be awaited."""
        ordered = begun.ordered
        if begun.draws is None:
            begun.draws = self._draws.batch(self._progress.epoch, ordered.indices, ordered.occurrences)
        table = self._table.table_of(ordered.indices) if isinstance(self._table, StreamTable) else self._table
        flight = self._engine.submit(table, ordered.indices, begun.draws)
        results = begun.results = Results(flight, begun.delivery.number, ordered.indices)
        self._submitted(results)
        return results

    @property
    def waiting(self) -> list[Begun]:
        """The batches that nobody has taken, in order."""
        return [one for one in self._batches if one.taker is None]

    def take(self, taker: object, chosen: Begun | None = None) -> Begun | None:
        """Returns the batch that is due, or the `chosen` one of those that wait; None at the end. The taker owns it
        until it is settled or `leave` is called.

        Raises:
            Exception: the sampler raised it. It is raised once; then the sampler's iterator is asked again.
        """
        begun = chosen or next(iter(self.waiting), None)
        if begun is not None:
            turn, foremost = self._turns + 1, max(self._foremost, begun.delivery.number)
            begun.delivery.turn = turn
            self._turns, self._foremost, begun.taker = turn, foremost, taker
            self._reach = None if self._reach is None or self._reach >= self.ahead else self._reach + 1
        elif self._error is not None:
            raise self._error
        return begun

    @property
    def ended(self) -> bool:
        """Whether the order has no more batches."""
        return self._ended or self._order.ended

    @property
    def torn(self) -> bool:
        """Whether the sampler raised."""
        return self._torn is not None

    @property
    def busy(self) -> bool:
        """Whether a batch is not settled yet."""
        return any(not one.delivery.settled for one in self._batches)

    def leave(self, taker: object, error: BaseException) -> None:
        """Called when the taker's ``next()`` raises. Its batch is passed over if the error belongs to that batch, as in
        torch's loader; otherwise it becomes the next batch again. May be called in any thread."""
        if error is self._error:
            self._error, self._out = None, self._out + 1
        of_a_batch = is_instance(error, Exception) and not is_instance(error, MAY_PASS)
        for begun in self._batches:
            if begun.taker is not taker or begun.delivery.settled:
                continue
            if error is begun.error or (of_a_batch and begun.complete):
                begun.delivery.passed = True
                begun.error = None  # its traceback refers to this batch
                if begun.results is not None and not begun.complete:  # the sampler raised while it was being made
                    begun.results.claim.claim_for_consumer(0)
                    self._engine.cancel(begun.results.flight)
                begun.forget()
                continue
            if begun.complete and not is_instance(error, Exception):  # an interrupt: results may be incomplete
                begun.forget()
            begun.complete, begun.taker = False, None

    def cancel(self) -> None:
        """Cancels all batches in the queue. May be called in any thread."""
        batches, self._batches = self._batches, ()
        for begun in batches:
            if begun.results is not None:
                begun.results.claim.claim_for_consumer(0)
                self._engine.cancel(begun.results.flight)
