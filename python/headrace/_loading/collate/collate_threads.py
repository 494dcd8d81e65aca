"""Threads that collate batches ahead of the consumer."""

from __future__ import annotations

import atexit
import functools
import queue
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from headrace._base.lifetimes.thread_settings import ThreadSettings
from headrace._base.lifetimes.threads import Serving
from headrace._base.lifetimes.weak_list import Living

_MOST = 4  # a collate_fn shares Python's interpreter with the training loop
_PARTING_S = 10.0  # time that a running collate_fn gets when the interpreter exits

T = TypeVar("T")


class CollateThreads(Generic[T]):
    """Threads that call `make` on the batches that `expect` names, in order.

    Args:
        make: a method, called with a batch; held weakly, since its owner ends the threads when it is dropped.
        threads: their number; 0: batches are not made ahead.

    Attributes:
        endings: functions in C that end the threads.
    """

    def __init__(self, make: Callable[[T], None], threads: int) -> None:
        self._queue: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._state = SimpleNamespace(ended=False)  # no Event: an interrupt may leave its lock taken
        owner, function = make.__self__, make.__func__  # type: ignore[attr-defined]
        # Not a WeakMethod, whose end calls a function of Python.
        how = (self._queue, self._state, weakref.ref(owner), function)
        settings = ThreadSettings.now()
        self._threads: list[Serving] = []
        self.endings: list[Callable[[], object]] = []
        for _ in range(min(threads, _MOST)):
            thread = Serving(settings.run, (_serve, *how), "headrace-collate")
            self._threads.append(thread)
            self.endings.append(functools.partial(self._queue.put, None))
            _started.add(thread)
        _live.add(self)

    def expect(self, batch: T) -> None:
        """Asks for a batch."""
        if self._threads:
            self._queue.put(batch)

    def thread_ids(self) -> list[int]:
        """Returns the threads, as the operating system numbers them."""
        return [one.native_id for one in self._threads if one.native_id is not None]

    def close(self) -> None:
        """Ends the threads after their current batch, without waiting for them. Idempotent."""
        self._state.ended = True
        for _ in self._threads:
            self._queue.put(None)


def _serve(
    waiting: queue.SimpleQueue[T | None],
    state: SimpleNamespace,
    owner: weakref.ref[object],
    make: Callable[[object, T], None],
) -> None:
    while (batch := waiting.get()) is not None and not state.ended:
        one = owner()
        if one is None:
            return
        with suppress(BaseException):  # the consumer collates what this thread has not
            make(one, batch)
        del one, batch


_live: Living[CollateThreads[Any]] = Living()
_started: Living[Serving] = Living()


@atexit.register
def _close_all() -> None:
    # Daemon threads must not be inside torch or the core when the interpreter exits.
    for one in _live:
        one.close()
    for thread in _started:
        thread.join(_PARTING_S)
