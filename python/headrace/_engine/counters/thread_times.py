"""How long threads ran on a core, and how long they waited for one, as the kernel counts it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_MOST = 8  # threads that are asked; reading one takes 15 µs


class Scheduled(NamedTuple):
    """Nanoseconds since the threads began, summed: on a core, and ready to run without getting one."""

    ran_ns: int = 0
    delayed_ns: int = 0

    def since(self, before: Scheduled) -> Scheduled:
        """Returns the difference; 0 where threads have ended since."""
        return Scheduled(*(max(0, now - then) for now, then in zip(self, before, strict=True)))

    def plus(self, more: Scheduled) -> Scheduled:
        """Returns the sum."""
        return Scheduled(self.ran_ns + more.ran_ns, self.delayed_ns + more.delayed_ns)


NEVER = Scheduled()


def scheduler_times_of_threads(ids: Sequence[int]) -> Scheduled:
    """Returns the times of threads of this process. Of many, some are asked and stand for all.

    Linux: ``/proc/self/task/ID/schedstat``. Threads that have ended, and kernels without this file, count as 0.
    """
    return _sum_times([f"/proc/self/task/{one}/schedstat" for one in ids])


def scheduler_times_of_processes(ids: Sequence[int]) -> Scheduled:
    """As `scheduler_times_of_threads`, of other processes: what all their threads ran, and what the main ones waited
    for a core.

    torch's workers hand their batches over in a thread of their own.
    """
    found = _sum_times([f"/proc/{one}/schedstat" for one in ids])
    others = _sum_groups([_paths_of_others(one) for one in _pick_some(ids)], len(ids))
    return Scheduled(found.ran_ns + others.ran_ns, found.delayed_ns)


def _paths_of_others(process: int) -> list[str]:
    """The files of all threads of a process but its main one."""
    folder = f"/proc/{process}/task"
    try:
        return [f"{folder}/{one}/schedstat" for one in os.listdir(folder) if int(one) != process]  # noqa: PTH208
    except OSError:
        return []


def _pick_some(all_of_them: Sequence[T]) -> Sequence[T]:
    return all_of_them if len(all_of_them) <= _MOST else all_of_them[:: -(-len(all_of_them) // _MOST)]


def _sum_times(paths: list[str]) -> Scheduled:
    return _sum_groups([[path] for path in _pick_some(paths)], len(paths))


def _sum_groups(asked: Sequence[Sequence[str]], count: int) -> Scheduled:
    """Returns the sum over some groups of files, scaled to `count` groups."""
    ran = delayed = 0
    for path in itertools.chain.from_iterable(asked):
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - half the time of pathlib
                first, second, _ = file.read().split()
        except (OSError, ValueError):
            continue
        ran += int(first)
        delayed += int(second)
    scale = count / len(asked) if asked else 1.0
    return Scheduled(round(ran * scale), round(delayed * scale))
