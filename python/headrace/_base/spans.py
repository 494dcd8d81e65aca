"""Records spans of time in Python threads; almost free while no recording is active."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext

from headrace._base.native import core

_NOT_RECORDED = nullcontext()


class _Span:
    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._begin = time.perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        core.add_span(self._name, self._begin, time.perf_counter_ns())


def span(name: str) -> AbstractContextManager[None]:
    """Returns a context manager that records the time spent in it, if a recording is active when `span` is called."""
    return _Span(name) if core.recording() else _NOT_RECORDED
