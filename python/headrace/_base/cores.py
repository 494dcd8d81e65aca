"""The CPUs that this process and its threads may use: affinity, quota, binding; also where only Linux has the calls."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable

from headrace._base import control_group


def usable_cores() -> int:
    """Returns the number of CPUs in this thread's affinity, but at most the CPU quota rounded up; 1 or more.

    A container with a quota sees all CPUs of its machine. Once its threads have used up the quota, the kernel stops all
    of them for the rest of the period. The quota is rounded up: 1.5 CPUs keep a second thread busy half of the time.
    """
    allowed, quota = allowed_cores(), control_group.cpu_quota()
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def allowed_cores() -> int:
    """Returns the number of CPUs in this thread's affinity."""
    return len(allowed_cpus())


def allowed_cpus(process: int = 0) -> set[int]:
    """Returns the CPUs that a process, or with 0 the calling thread, may run on; elsewhere all of the machine.

    Raises:
        OSError: there is no such process, or it may not be asked about.
    """
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(process)
    return set(range(os.cpu_count() or 1))


def can_bind() -> bool:
    """Whether threads can be bound to CPUs."""
    return hasattr(os, "sched_setaffinity")


def bind_thread(thread: int, cpus: Iterable[int]) -> None:
    """Binds a thread to CPUs; does nothing if it has just ended, or where threads cannot be bound.

    Args:
        thread: as the operating system numbers it; 0: the calling one.

    Raises:
        OSError: it may run on none of the CPUs.
    """
    if can_bind():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cpus)
