"""Threads in Python whose objects are freed in the threads themselves."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class Serving:
    """A daemon thread that calls a function.

    Nothing but the thread refers to its `threading.Thread`: `threading` keeps these in a set of weak references whose
    callbacks are Python, and an interrupt in one is lost. Interrupts reach the main thread only.

    Attributes:
        ident, native_id: the thread's numbers.
    """

    def __init__(self, function: Callable[..., object], arguments: tuple[object, ...], name: str) -> None:
        self._running = threading.Lock()  # held by the thread until its function has returned
        self._running.acquire()
        self._process = os.getpid()
        how = function, arguments, self._running.release
        thread = threading.Thread(target=_run_and_report_end, args=how, name=name, daemon=True)
        thread.start()
        self.ident, self.native_id = thread.ident, thread.native_id

    def join(self, seconds: float | None = None) -> None:
        """Waits up to `seconds` until the function has returned. A forked child does not have the thread."""
        if self._process == os.getpid() and self._running.acquire(timeout=-1 if seconds is None else seconds):
            self._running.release()


def _run_and_report_end(
    function: Callable[..., object], arguments: tuple[object, ...], ended: Callable[[], object]
) -> None:
    try:
        function(*arguments)
    finally:
        ended()
