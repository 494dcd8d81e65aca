"""Number of CPU cores that this process may use, from its affinity and the CPU quota of its control groups."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from headrace._base.system import allowed_cpus

_ROOT = Path("/")
_HIERARCHY_1 = ("cpu,cpuacct", "cpu")  # mount points of the cpu controller in cgroups version 1


def usable_cores() -> int:
    """Returns the number of CPUs in this thread's affinity, but at most the CPU quota rounded up; 1 or more.

    A container with a quota sees all CPUs of its machine. Once its threads have used up the quota, the kernel stops all
    of them for the rest of the period. The quota is rounded up: 1.5 CPUs keep a second thread busy half of the time.
    """
    allowed, quota = allowed_cores(), cpu_quota()
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def allowed_cores() -> int:
    """Returns the number of CPUs in this thread's affinity."""
    return len(allowed_cpus())


@functools.cache  # reads files, and quotas rarely change while a process runs
def cpu_quota(root: Path = _ROOT) -> float | None:
    """Returns the CPU quota of this process's control groups, in CPUs; None if there is no limit.

    The quotas of all parent groups apply too, so the smallest one is returned.

    Args:
        root: root of the file system, which holds ``proc/self/cgroup`` and ``sys/fs/cgroup``.
    """
    quotas = [quota for folder in _list_group_folders(root) if (quota := _read_quota(folder)) is not None]
    return min(quotas, default=None)


def _list_group_folders(root: Path) -> Iterator[Path]:
    """Yields candidate folders of this process's control groups and their parents; not all of them need to exist.

    Each line of ``/proc/self/cgroup`` is number:controllers:path, with number 0 and no controllers for version 2. In a
    container the path may be that of the host, which does not exist in the container; the container's own group is then
    the root of the mount.
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


def _read_quota(folder: Path) -> float | None:
    """Returns the quota of one group, in CPUs; None if there is none or it cannot be read."""
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
