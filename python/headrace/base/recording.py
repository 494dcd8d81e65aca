"""What a Python thread does, for a recording: spans of time, which cost next to nothing where nobody records."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext

from headrace.base.native import core

_NOT_RECORDED = nullcontext()


class _Span:
    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._begin = time.perf_counter_ns()

    def __exit__(self, *error: object) -> None:
        core.add_span(self._name, self._begin, time.perf_counter_ns())


def span(name: str) -> AbstractContextManager[None]:
    """Records what is inside ``with``, if anybody records at its beginning."""
    return _Span(name) if core.recording() else _NOT_RECORDED
