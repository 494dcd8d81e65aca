"""How long threads ran on a core, and how long they waited for one, as the kernel counts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_MOST = 8  # threads that are asked; reading one takes 15 µs


class Scheduled(NamedTuple):
    """Nanoseconds since the threads began, summed: on a core, and ready to run without getting one."""

    ran_ns: int = 0
    delayed_ns: int = 0

    def since(self, before: Scheduled) -> Scheduled:
        """Returns the difference; 0 where threads have ended since."""
        return Scheduled(*(max(0, now - then) for now, then in zip(self, before, strict=True)))


NEVER = Scheduled()


def of_threads(ids: Sequence[int]) -> Scheduled:
    """Returns the times of threads of this process. Of many, some are asked and stand for all.

    Linux: ``/proc/self/task/ID/schedstat``. Threads that have ended, and kernels without this file, count as 0.
    """
    return _summed([f"/proc/self/task/{one}/schedstat" for one in ids])


def of_processes(ids: Sequence[int]) -> Scheduled:
    """As `of_threads`, of the main threads of other processes."""
    return _summed([f"/proc/{one}/schedstat" for one in ids])


def _summed(paths: list[str]) -> Scheduled:
    asked = paths if len(paths) <= _MOST else paths[:: -(-len(paths) // _MOST)]
    ran = delayed = 0
    for path in asked:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - half the time of pathlib
                first, second, _ = file.read().split()
        except (OSError, ValueError):
            continue
        ran += int(first)
        delayed += int(second)
    scale = len(paths) / len(asked) if asked else 1.0
    return Scheduled(round(ran * scale), round(delayed * scale))
