"""What kinds of CPython differ in."""

from __future__ import annotations

import sys


def has_gil() -> bool:
    """Whether one thread at a time runs Python; it may change when a module is loaded."""
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())
