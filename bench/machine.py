"""Describes the machine, picks the CPUs of a measurement, and reads the common options."""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path
from typing import Any


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def describe() -> dict[str, Any]:
    """The facts that a reader needs to judge a figure: CPU, cores, memory, kernel, C library, Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "logical_cpus": os.cpu_count(),
        "usable_cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
    }


def pick_cpus(count: int) -> set[int]:
    """The first `count` usable CPUs; the first hardware threads of all physical cores come before second ones.

    Two hardware threads of one core are not two cores: a measurement of "2 cores" on siblings would be wrong.
    """
    usable = sorted(os.sched_getaffinity(0))
    if count > len(usable):
        raise SystemExit(f"asked for {count} cores, but this process may use only {len(usable)}")
    seen: set[str] = set()
    firsts: list[int] = []
    seconds: list[int] = []
    for cpu in usable:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text().strip() if siblings.exists() else str(cpu)
        (seconds if core in seen else firsts).append(cpu)
        seen.add(core)
    return set((firsts + seconds)[:count])


def options_of(parser: argparse.ArgumentParser, *, cores: int, rounds: int) -> argparse.Namespace:
    """Parses the options of a small benchmark, with the common ones; pins the process to its cores, and limits torch
    to one thread."""
    import torch

    parser.add_argument("--cores", type=int, default=cores)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out", type=Path, help="also writes the figures here, as JSON")
    options = parser.parse_args()
    os.sched_setaffinity(0, pick_cpus(options.cores))
    torch.set_num_threads(1)
    return options
