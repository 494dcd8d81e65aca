"""A control group of its own for a process: a quota of cores, and a share of the machine that does not depend on its
number of threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PERIOD_US = 100_000
_V1, _V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
# The kernel divides cores among groups, then among a group's threads. In the group of all other programs a process gets
# more of a busy machine the more threads it has; in its own it does not. The weight is that of 16 programs.
_WEIGHT_V1, _WEIGHT_V2 = "16384", "1600"


@contextmanager
def limited(quota: float) -> Iterator[Path | None]:
    """Makes a control group for CPU time, and removes it at the end, when no process is in it any more.

    Args:
        quota: cores; 0: no quota.

    Yields:
        The group's folder; a process joins by writing its number into ``cgroup.procs``. None: groups cannot be made.
    """
    limit = round(quota * _PERIOD_US)
    v1 = {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(limit or -1), "cpu.shares": _WEIGHT_V1}
    v2 = {"cpu.max": f"{limit or 'max'} {_PERIOD_US}", "cpu.weight": _WEIGHT_V2}
    group = _made(_V1, v1) or _made(_V2, v2)
    try:
        yield group
    finally:
        if group is not None:
            group.rmdir()


def throttled(group: Path) -> tuple[int, int]:
    """Returns the numbers of periods in which the group ran, and in which its quota stopped it."""
    lines = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(lines.get("nr_periods", 0)), int(lines.get("nr_throttled", 0))


def _made(top: Path, limits: dict[str, str]) -> Path | None:
    group = top / f"headrace-bench-{os.getpid()}"
    try:
        group.mkdir()
        for name, value in limits.items():
            (group / name).write_text(value)
    except OSError:
        if group.exists():
            group.rmdir()
        return None
    return group
