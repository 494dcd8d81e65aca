"""The JSON file of all soaks: one record a run, and their sums. Runs of several processes may add to it at a time."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ABOUT = (
    "python -m bench.soak: headrace trains under faults, and every sample is compared with a checksum of the oracle's. "
    "samples: delivered; samples_reported, samples_replaced: failed by an injected fault or a damaged file, as "
    "on_error says; lost: neither delivered nor reported; wrong: other bytes or another place; unexpected: errors that "
    "no fault explains; hours: without the time for which the processes were stopped; longest_wait_s: in next(); "
    "longest_quiet_wait_s: of this, while no thread of the process ran or was waiting for a core; growth: of anonymous "
    "memory, by least squares after the first quarter of a run of at least half an hour; growth_in_use: of what is "
    "allocated and not freed, in malloc's heaps and Python's, which gaps between the allocations do not change."
)
_LARGEST = ("longest_wait_s", "longest_quiet_wait_s")
_GROWTHS = ("growth_mb_per_hour", "growth_in_use_mb_per_hour")


def add(path: Path, run: dict[str, Any]) -> dict[str, Any]:
    """Puts a run into the file, in place of the run with the same `id`, and returns the new content.

    The file is replaced as a whole, so that it can be read at any time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        runs = read(path)
        runs = [one for one in runs if one["id"] != run["id"]] + [run]
        content = {"about": ABOUT, "totals": totals(runs), "runs": runs}
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(content, indent=1) + "\n")
        unfinished.replace(path)
    return content


def read(path: Path) -> list[dict[str, Any]]:
    """Returns the runs in a file; none if it is missing."""
    if not path.exists():
        return []
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"]
    return runs


def totals(runs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Returns the sums of the runs' figures, the largest waits, and the growth of the runs that are long enough,
    weighted with their hours."""
    made: dict[str, Any] = {"runs": 0, "hours": 0.0, "counters": {}, "faults": {}, "hangs": 0, "crashes": 0}
    made |= dict.fromkeys(_LARGEST, 0.0)
    grown, weight = dict.fromkeys(_GROWTHS, 0.0), dict.fromkeys(_GROWTHS, 0.0)
    for run in runs:
        made["runs"] += 1
        for name in ("hours", "hangs", "crashes"):
            made[name] = round(made[name] + run[name], 4)
        for name in _LARGEST:
            made[name] = max(made[name], run[name])
        for group in ("counters", "faults"):
            for name, count in run[group].items():
                made[group][name] = made[group].get(name, 0) + count
        for name in _GROWTHS:
            if run.get(name) is not None:
                grown[name] += run[name] * run["hours"]
                weight[name] += run["hours"]
    made |= {name: round(grown[name] / weight[name], 3) if weight[name] else None for name in _GROWTHS}
    made["faults_injected"] = sum(made["faults"].values())
    return made


def growth(points: list[tuple[float, float]]) -> float | None:
    """Returns the slope of memory in MB an hour, from (seconds, MB); None for less than half an hour. The first quarter
    is left out: caches and the allocator's arenas fill."""
    if not points or points[-1][0] - points[0][0] < 1800:
        return None
    begin = points[0][0] + (points[-1][0] - points[0][0]) / 4
    late = [(seconds / 3600, size) for seconds, size in points if seconds >= begin]
    x, y = (sum(values) / len(late) for values in zip(*late, strict=True))
    spread = sum((hours - x) ** 2 for hours, _ in late)
    return round(sum((hours - x) * (size - y) for hours, size in late) / spread, 3)
