"""Imports the native module `_core`; raises a clear error if it cannot be loaded or rejects a setting."""

from __future__ import annotations

try:
    from headrace import _core as core
except ImportError as error:
    raise ImportError(
        f"headrace's native module does not load ({error}); install headrace with `pip install .` or from a wheel of "
        "this Python version, and run it from outside its source folder"
    ) from error

try:
    core.instruction_set()
except RuntimeError as error:  # an invalid HEADRACE_ISA, reported at import instead of by the first loader
    raise ValueError(str(error)) from None

__all__ = ["core"]
