"""The batches of one epoch that are begun and not yet handed out, in their order.

A signal may raise between any two calls of Python's (CPython looks for signals after each), in the main thread. So
what belongs together is stored by assignments with no call between them, and each method can be called again after it
was interrupted anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headrace.base.errors import SampleError
from headrace.base.native import core
from headrace.base.recording import span
from headrace.engine.engine import Engine, Flight
from headrace.epochs.delivery import Delivery, settle
from headrace.epochs.order import OrderedBatch
from headrace.randomness.draws import Draws

if TYPE_CHECKING:
    from headrace.epochs.state import Progress

# Whose batch stays the next one: there may be memory when it is asked for again.
MAY_PASS = (MemoryError, torch.OutOfMemoryError)


@dataclass(eq=False)
class Begun:
    """A batch on its way; without a flight and an error it is still to be submitted."""

    ordered: OrderedBatch
    delivery: Delivery
    draws: np.ndarray[Any, Any] | None = None
    flight: Flight | None = None
    error: Exception | None = None  # why it cannot be begun
    taker: object | None = None  # the call that is about to hand it out
    complete: bool = False  # it was awaited: what is wrong from now on is wrong with it
    errors: list[SampleError] | None = None  # of its samples that could not be made; None: not looked at yet
    failed: list[int] = field(default_factory=list)  # where these are
    images: torch.Tensor | None = None  # handed over by the engine
    indices: Any = None  # of the samples in them, int64

    def forget(self) -> None:
        """Keeps nothing of what was made: it can be made again, of the same draws."""
        self.flight = self.images = self.indices = self.errors = None
        self.failed = []


class Line:
    """Begins batches of an order and gives each to one taker at a time.

    Its methods are called under one lock, but for `leave` and `cancel`.

    Args:
        ahead: batches that are begun beyond the one that is due.
    """

    def __init__(
        self,
        table: core.BlobTable,
        engine: Engine,
        order: Iterator[OrderedBatch],
        draws: Draws,
        progress: Progress,
        ahead: int,
    ) -> None:
        self._table, self._engine, self._progress, self._ahead = table, engine, progress, ahead
        self._line: tuple[Begun, ...] = ()
        self._begin(order, draws)

    def _begin(self, order: Iterator[OrderedBatch], draws: Draws) -> None:
        self._order, self._draws = order, draws
        self._named: OrderedBatch | None = None  # by the order, and not yet in the line
        self._number = self._progress.position  # of the next that the order names
        self._error: Exception | None = None  # of the sampler; raised when the batches before it are out
        self._ended = False
        self.asking = False  # whether the order was asked and has not answered
        self.torn = False  # whether the sampler raised: what it names since then has no known place in its order

    def begin_anew(self, order: Iterator[OrderedBatch]) -> None:
        """Goes over to another order, of another seed."""
        self.cancel()
        self._begin(order, self._draws.of_seed(self._progress.seed))

    def fill(self) -> None:
        """Begins batches up to the one that is due and as many behind it as the loader is to be ahead."""
        progress = self._progress
        progress.behind, progress.deliveries = settle(progress.behind, progress.deliveries)
        self._line = tuple([one for one in self._line if not one.delivery.settled])
        with span("submit"):
            while sum(one.taker is None for one in self._line) <= self._ahead:
                begun = self._next_begun()
                if begun is None:
                    return
                self._try_to_submit(begun)

    def _next_begun(self) -> Begun | None:
        """The order's next batch, put into the line."""
        if self._named is None:
            if self._ended or self._error is not None:
                return None
            self.asking = True
            try:
                for self._named in self._order:  # noqa: B020 - no call, so no interrupt, before it is stored
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
        try:
            self.submit(begun)
        except MAY_PASS:
            pass  # it is tried again when it is due
        except Exception as error:  # samples that do not make a batch, say: said when it is due
            begun.error = error.with_traceback(None)

    def submit(self, begun: Begun) -> Flight:
        """Has the engine make it."""
        ordered = begun.ordered
        if begun.draws is None:
            begun.draws = self._draws.batch(self._progress.epoch, ordered.indices, ordered.occurrences)
        begun.flight = self._engine.submit(self._table, ordered.indices, begun.draws)
        return begun.flight

    def take(self, taker: object) -> Begun | None:
        """The batch that is due; None at the end. It is this taker's until it is settled, or `leave` is called.

        Raises:
            Exception: the sampler's, whose turn has come: once, and then the sampler's iterator is asked again.
        """
        begun = next((one for one in self._line if one.taker is None), None)
        if begun is not None:
            begun.taker = taker
        elif self._error is not None:
            raise self._error
        return begun

    @property
    def busy(self) -> bool:
        """Whether there is a batch that is not settled."""
        return any(not one.delivery.settled for one in self._line)

    def leave(self, taker: object, error: BaseException) -> None:
        """The taker's call ends with an error: what it had is passed over where the error is of that batch, as with
        torch's loader; else it is the next one again. Any thread."""
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
            if begun.complete and not isinstance(error, Exception):  # an interrupt: anything may be half done
                begun.forget()
            begun.complete, begun.taker = False, None

    def cancel(self) -> None:
        """Cancels all batches in the line. Any thread."""
        line, self._line = self._line, ()
        for begun in line:
            if begun.flight is not None:
                self._engine.cancel(begun.flight)
