"""Limits of this process's control groups, versions 1 and 2: memory, CPU quota, CPU set."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

_ROOT = Path("/")
_NO_LIMIT = 2**60  # version 1 writes a huge number where there is no limit


def version(root: Path = _ROOT) -> int:
    """Returns the version of the control groups: 2, 1, or 0 if there are none."""
    mount = root / "sys/fs/cgroup"
    if (mount / "cgroup.controllers").exists():
        return 2
    return 1 if (mount / "memory").is_dir() or (mount / "cpu").is_dir() else 0


def memory_limit(root: Path = _ROOT) -> int | None:
    """Returns the memory that this process's groups may use, in bytes; None if there is no limit."""
    limits = []
    for folder in _list_group_folders(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read_setting(folder / name)
            if text.isdecimal() and int(text) < _NO_LIMIT:
                limits.append(int(text))
    return min(limits, default=None)


def memory_used(root: Path = _ROOT) -> int:
    """Returns the memory that the group with the least limit uses, without files in the page cache that it would give
    up, in bytes; 0 if unknown."""
    for folder in _list_group_folders(root, "memory"):
        for name, statistic in (("memory.current", "inactive_file"), ("memory.usage_in_bytes", "total_inactive_file")):
            if (text := _read_setting(folder / name)).isdecimal():
                lines = dict(
                    line.split(" ", 1) for line in _read_setting(folder / "memory.stat").splitlines() if " " in line
                )
                return max(0, int(text) - int(lines.get(statistic, 0)))
    return 0


@functools.cache  # reads files, and quotas rarely change while a process runs
def cpu_quota(root: Path = _ROOT) -> float | None:
    """Returns the CPU quota of this process's groups, in CPUs; None if there is no limit.

    The quotas of all parent groups apply too, so the smallest one is returned.

    Args:
        root: root of the file system, which holds ``proc/self/cgroup`` and ``sys/fs/cgroup``.
    """
    quotas = (_read_quota(folder) for folder in _list_group_folders(root, "cpu"))
    return min((quota for quota in quotas if quota is not None), default=None)


class Throttling(NamedTuple):
    """How often a quota has stopped a group since the group was made.

    Attributes:
        periods, stopped: periods in which the group ran, and those in which the quota stopped it.
        seconds: how long it was stopped, summed over cores.
    """

    periods: int = 0
    stopped: int = 0
    seconds: float = 0.0


def cpu_throttling(root: Path = _ROOT) -> Throttling:
    """Returns how often the quotas of this process's groups have stopped it; of several, those of the group that was
    stopped longest."""
    found = [Throttling()]
    for folder in _list_group_folders(root, "cpu"):
        lines = dict(one.split(" ", 1) for one in _read_setting(folder / "cpu.stat").splitlines() if " " in one)
        seconds = int(lines.get("throttled_usec", 0)) / 1e6 + int(lines.get("throttled_time", 0)) / 1e9
        found.append(Throttling(int(lines.get("nr_periods", 0)), int(lines.get("nr_throttled", 0)), seconds))
    return max(found, key=lambda one: one.seconds)


def cpu_set(root: Path = _ROOT) -> str:
    """Returns the CPUs that the group may use, as the kernel writes them (``"0-3,8"``); "" if unknown."""
    for folder in _list_group_folders(root, "cpuset"):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            if text := _read_setting(folder / name):
                return text
    return ""


def _list_group_folders(root: Path, controller: str) -> list[Path]:
    """Returns candidate folders of this process's group and its parents, the group first; not all need to exist.

    Each line of ``/proc/self/cgroup`` is number:controllers:path, with number 0 and no controllers for version 2. In
    version 1 a hierarchy has a mount of its own, named for all its controllers (``cpu,cpuacct``), with a link for each;
    not every system has the links. In a container the path may be that of the host, which does not exist in the
    container; the container's own group is then the root of the mount.
    """
    mount, folders = root / "sys/fs/cgroup", []
    for line in _read_setting(root / "proc/self/cgroup").splitlines():
        number, listed, path = line.split(":", 2)
        controllers = listed.split(",")
        if number == "0":
            tops = [mount]
        elif controller in controllers:
            tops = [mount / name for name in dict.fromkeys((listed, ",".join(sorted(controllers)), controller))]
        else:
            continue
        inside = Path(path.lstrip("/"))
        folders += [top / group for top in tops for group in (inside, *inside.parents) if ".." not in group.parts]
    return folders


def _read_quota(folder: Path) -> float | None:
    """Returns the quota of one group, in CPUs; None if there is none or it cannot be read."""
    both = _read_setting(folder / "cpu.max").split()  # ["max", "100000"] or ["150000", "100000"], in microseconds
    if len(both) != 2:  # version 1; a quota of -1: no limit
        both = [_read_setting(folder / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    try:
        quota = int(both[0]) / int(both[1])
    except (ValueError, ZeroDivisionError):
        return None
    return quota if quota > 0 else None


def _read_setting(path: Path) -> str:
    """Returns a file's text without the spaces around it; "" if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
