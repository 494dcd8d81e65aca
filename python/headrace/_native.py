"""The native module `_core`, or one sentence about why it is not there."""

from __future__ import annotations

try:
    from headrace import _core as core
except ImportError as error:
    raise ImportError(
        f"headrace's native module does not load ({error}); install headrace with `pip install .` or from a wheel of "
        "this Python version, and run it from outside its source folder"
    ) from error

__all__ = ["core"]
