"""What is done when an object is dropped, without a line of Python: Python ignores exceptions there.

A signal's handler runs between two lines of Python. In ``__del__`` or in the callback of a weak reference, the
KeyboardInterrupt of Ctrl-C is printed as "Exception ignored in" and lost. So these call functions of C only.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import operator
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable


class Ending:
    """Base class of objects that call a function when they are dropped.

    Attributes:
        at_end: the function, in C; it takes no arguments, and must not refer to the object.
    """

    at_end: Callable[[], object] = bool
    # A property of a function in C: so neither finding the function nor calling it runs a line of Python.
    __del__: property = property(operator.attrgetter("at_end"))


def call_all(*functions: Iterable[Callable[[], object]]) -> Callable[[], object]:
    """Returns a function in C that calls each function of these lists once; they are functions in C, too."""
    return functools.partial(deque, map(operator.methodcaller("__call__"), itertools.chain(*functions)), 0)


def call_in_finalizer_thread(function: Callable[[], object]) -> Callable[[], object]:
    """Returns a function in C that has `function`, of Python, called by a thread soon. It must be called once."""
    return _Elsewhere.of_process().reserve_call(function)


_PARTING_S = 60.0  # limit for the functions at interpreter exit; a disk may hang


class _Elsewhere:
    """The thread, which lives as long as functions are expected."""

    _made: _Elsewhere | None = None

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._expected = 0
        self._process = os.getpid()

    @classmethod
    def of_process(cls) -> _Elsewhere:
        if cls._made is None or cls._made._process != os.getpid():  # a forked child has no thread, and another lock
            cls._made = cls()
        return cls._made

    def reserve_call(self, function: Callable[[], object]) -> Callable[[], object]:
        with self._lock:
            self._expected += 1
            if self._expected == 1:
                threading.Thread(target=self._run_calls, name="headrace-endings", daemon=True).start()
        return functools.partial(self._queue.put, function)

    def finish(self) -> None:
        """Waits until what has been requested so far is done."""
        if self._process != os.getpid():
            return
        done = threading.Event()
        with self._lock:
            if self._expected == 0:
                return
            self._expected += 1
        self._queue.put(done.set)
        done.wait(_PARTING_S)

    def _run_calls(self) -> None:
        while True:
            function = self._queue.get()
            try:
                function()
            except Exception:  # printed as of any thread; the others' functions are still called
                kind, error, trace = sys.exc_info()
                threading.excepthook(threading.ExceptHookArgs((kind, error, trace, threading.current_thread())))
            del function
            with self._lock:
                self._expected -= 1
                if self._expected == 0:
                    return


@atexit.register
def _await_finalizers() -> None:
    """Daemon threads end with the interpreter: a table of an object that was just dropped would not be saved."""
    if _Elsewhere._made is not None:
        _Elsewhere._made.finish()
