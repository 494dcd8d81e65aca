"""How many CPU cores this process may use: its affinity, and the CPU quota of its control groups."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_ROOT = Path("/")
_HIERARCHY_1 = ("cpu,cpuacct", "cpu")  # where version 1's controller of CPU time is mounted


def usable_cores() -> int:
    """CPUs of this thread's affinity, and no more than the quota rounded up; 1 or more.

    A container with a quota shows all CPUs of its machine. Threads beyond the quota are stopped for the rest of each
    period, all of them at once. Rounded up, since 1.5 CPUs keep a second thread busy half of the time.
    """
    allowed, quota = allowed_cores(), cpu_quota()
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def allowed_cores() -> int:
    """CPUs that the scheduler may put this thread on."""
    return len(os.sched_getaffinity(0))


@functools.cache  # files are read, and quotas hardly change while a process runs
def cpu_quota(root: Path = _ROOT) -> float | None:
    """CPUs' worth of time that the control groups grant, None for no limit.

    A group is bound by the groups above it, too: the least of their quotas counts.

    Args:
        root: of the file system, with ``proc/self/cgroup`` and ``sys/fs/cgroup`` below it.
    """
    quotas = [quota for folder in _groups(root) if (quota := _quota_of(folder)) is not None]
    return min(quotas, default=None)


def _groups(root: Path) -> Iterator[Path]:
    """The folders of this process's control groups, and of those above them, where there are any.

    Each line of ``/proc/self/cgroup`` is number:controllers:path, with number 0 and no controllers for version 2. In a
    container the path may be the machine's, and is not there; the container's own group is the root of the mount then.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    mount = root / "sys/fs/cgroup"
    for line in lines:
        number, controllers, path = line.split(":", 2)
        inside = PurePosixPath(path.lstrip("/"))
        if number == "0":
            tops = [mount]
        elif "cpu" in controllers.split(","):
            tops = [mount / name for name in _HIERARCHY_1]
        else:
            continue
        for top in tops:
            yield from (top / group for group in (inside, *inside.parents) if ".." not in group.parts)


def _quota_of(folder: Path) -> float | None:
    """The quota of one group, in CPUs."""
    try:
        limit, period = (folder / "cpu.max").read_text().split()  # "max 100000" or "150000 100000", in microseconds
    except (OSError, ValueError):
        try:
            limit = (folder / "cpu.cfs_quota_us").read_text()  # -1: no limit
            period = (folder / "cpu.cfs_period_us").read_text()
        except OSError:
            return None
    try:
        quota = int(limit) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return quota if quota > 0 else None
