"""Limits of this process's control groups, versions 1 and 2, and of its CPU sets."""

from __future__ import annotations

from pathlib import Path

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
    for folder in _find_group_folders(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read_setting(folder / name)
            if text.isdecimal() and int(text) < _NO_LIMIT:
                limits.append(int(text))
    return min(limits, default=None)


def memory_used(root: Path = _ROOT) -> int:
    """Returns the memory that the group with the least limit uses, without files in the page cache that it would give
    up, in bytes; 0 if unknown."""
    for folder in _find_group_folders(root, "memory"):
        for name, statistic in (("memory.current", "inactive_file"), ("memory.usage_in_bytes", "total_inactive_file")):
            if (text := _read_setting(folder / name)).isdecimal():
                lines = dict(
                    line.split(" ", 1) for line in _read_setting(folder / "memory.stat").splitlines() if " " in line
                )
                return max(0, int(text) - int(lines.get(statistic, 0)))
    return 0


def cpu_set(root: Path = _ROOT) -> str:
    """Returns the CPUs that the group may use, as the kernel writes them (``"0-3,8"``); "" if unknown."""
    for folder in _find_group_folders(root, "cpuset"):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
            if text := _read_setting(folder / name):
                return text
    return ""


def _find_group_folders(root: Path, controller: str) -> list[Path]:
    """Returns candidate folders of this process's group and its parents; not all of them need to exist."""
    mount, found = root / "sys/fs/cgroup", []
    for line in _read_setting(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            top = mount
        elif controller in controllers.split(","):
            top = mount / controller
        else:
            continue
        inside = Path(path.lstrip("/"))
        found += [top / group for group in (inside, *inside.parents) if ".." not in group.parts]
    return found


def _read_setting(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
