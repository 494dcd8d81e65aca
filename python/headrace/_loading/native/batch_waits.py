"""Waits for the batches of an iterator: for one, or for whichever is complete first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from headrace._base.native import span
from headrace._engine.engine import Engine, Flight
from headrace._loading.native.pending_batch import Begun, Results

_FOREVER_S = 1e9
_LOOK_S = 0.001  # the earliest batch is awaited this long, then the others are looked at


class Waiting(Protocol):
    """An engine, or what looks at its speed while it waits."""

    def wait(self, flight: Flight, seconds: float) -> bool: ...


class BatchWaits:
    """Waits for batches, in the consumer's thread.

    Args:
        engine: makes the batches.
        timeout: seconds after which a wait raises RuntimeError, which names them as given; 0: never.
        drawing: returns a context for steps that run in the waiting thread.

    Attributes:
        by: what waits; the engine, unless something else is set.
        collates: whether threads collate the batches that `choose` may choose.
        closed: whether the iterator was closed.
    """

    def __init__(self, engine: Engine, timeout: float, drawing: Callable[[], AbstractContextManager[object]]) -> None:
        self._engine, self._timeout, self._drawing = engine, timeout, drawing
        self.by: Waiting = engine
        self.collates = self.closed = False

    def wait(self, flight: Flight) -> None:
        """Waits for a batch.

        Raises:
            RuntimeError: the time is over, or the loader was closed.
        """
        with span("wait"):
            if not self._wait_up_to(flight, float(self._timeout) or _FOREVER_S):
                raise self._timed_out()

    def claim(self, results: Results) -> None:
        """Waits until no other thread reads a batch's results. Raises RuntimeError: the time is over."""
        if not results.claim.claim_for_consumer(float(self._timeout) or -1):
            raise self._timed_out()

    def choose(self, waiting: Sequence[Begun]) -> Begun | None:
        """Waits until one of the batches can be handed out, and returns it: the earliest, if several can.

        Args:
            waiting: the batches that nobody has taken, in order. Without any, None is returned.

        Raises:
            RuntimeError: the time is over, or the loader was closed.
        """
        if not waiting:
            return None
        deadline = time.monotonic() + (float(self._timeout) or _FOREVER_S)
        with span("wait"):
            while (chosen := next((one for one in waiting if self._is_due(one)), None)) is None:
                first = waiting[0].results
                if first is None:  # memory was short: it is begun again
                    return waiting[0]
                if self._wait_up_to(first.flight, _LOOK_S):  # a thread is collating it
                    time.sleep(_LOOK_S)
                if time.monotonic() >= deadline:
                    raise self._timed_out()
        return chosen

    def _is_due(self, one: Begun) -> bool:
        """Whether a batch can be handed out, or its error raised, without waiting."""
        if one.error is not None or one.as_torch:
            return True
        results = one.results
        if results is None or not self._wait_up_to(results.flight, 0.0):
            return False
        return results.claim.ended or not self.collates

    def _wait_up_to(self, flight: Flight, seconds: float) -> bool:
        try:
            with self._drawing():
                ready = (self.by if seconds else self._engine).wait(flight, seconds)
            if not ready and (self.closed or self._engine.closed):
                raise RuntimeError("the loader was closed while a batch was awaited")
            return ready
        except BaseException:
            self._engine.abandon_steps()  # closing must not wait for a Python step that may never end
            raise

    def _timed_out(self) -> RuntimeError:
        self._engine.abandon_steps()
        return RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
