"""The native module `_core`, or one sentence about why it is not there or does not take a setting."""

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
except RuntimeError as error:  # of HEADRACE_ISA; here, before the first loader meets it
    raise ValueError(str(error)) from None

__all__ = ["core"]
