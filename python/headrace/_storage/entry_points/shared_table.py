"""A table of entry points on its way to worker processes, which use its memory: shared, and free of locks.

Forked workers inherit the memory. Others get a descriptor of it, which multiprocessing passes on where a process is
started; they find out whether it leads to the memory that was meant.
"""

from __future__ import annotations

import os
from multiprocessing import context
from multiprocessing.reduction import DupFd
from typing import Any

from headrace._base.native import core
from headrace._base.types import Array


class SharedTable:
    """Holds a table, or None, wherever it is unpickled.

    Args:
        native: the table; None: there is none.
    """

    def __init__(self, native: core.EntryPoints | None) -> None:
        self.native = native

    def __reduce__(self) -> tuple[object, ...]:
        native = self.native
        starting = getattr(context, "get_spawning_popen")()  # noqa: B009 - not in typeshed
        if native is None or native.descriptor < 0 or starting is None:
            return SharedTable, (None,)
        return _attach, (DupFd(native.descriptor), native.capacity, native.secrets)


def _attach(sent: Any, capacity: int, secrets: Array) -> SharedTable:
    """Returns the table in the process that it was sent to; without one if its memory cannot be mapped here."""
    descriptor = sent.detach()
    try:
        return SharedTable(core.EntryPoints.attach(descriptor, capacity, secrets))
    finally:
        os.close(descriptor)
