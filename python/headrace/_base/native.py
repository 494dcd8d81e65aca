"""The native module `_core`, or a clear error if it cannot be loaded or rejects a setting; spans that Python threads
record with it; whether the interpreter has a GIL."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext

from headrace._base.messages import install_command

try:
    from headrace import _core as core
except ImportError as error:
    raise ImportError(
        f"headrace's native module does not load ({error}); install headrace for this Python version "
        f"({install_command()}), and run it from outside its source folder"
    ) from error

try:
    core.instruction_set()
except RuntimeError as error:  # an invalid HEADRACE_ISA, reported at import instead of by the first loader
    raise ValueError(str(error)) from None

__all__ = ["core"]


def has_gil() -> bool:
    """Whether one thread at a time runs Python; it may change when a module is loaded."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())


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
