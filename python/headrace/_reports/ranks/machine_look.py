"""What the machine gives to this process: cores, clocks, and how often a quota stopped it."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from headrace._base.control_group import Throttling, cpu_throttling
from headrace._engine.counters.thread_times import NEVER, Scheduled, scheduler_times_of_threads

_SOME_CORES = 4  # of which the clock is read
_NEVER_STOPPED = Throttling()


@dataclass(frozen=True)
class MachineLook:
    """Counters of one moment.

    Attributes:
        throttling: of the control group.
        consumer, threads: the times of the consumer's thread, and of all threads of the process.
        cpu_mhz, gpu_mhz: clocks of now; 0 if unknown.
    """

    throttling: Throttling = _NEVER_STOPPED
    consumer: Scheduled = NEVER
    threads: Scheduled = NEVER
    cpu_mhz: float = 0.0
    gpu_mhz: float = 0.0


def look_at_machine(consumer: int, gpu: int) -> MachineLook:
    """Returns the counters of now.

    Args:
        consumer: number of the consumer's thread, as the system counts.
        gpu: number of its device; -1: none.
    """
    threads = [int(one) for one in os.listdir("/proc/self/task")] if Path("/proc/self/task").is_dir() else []  # noqa: PTH208
    return MachineLook(
        cpu_throttling(),
        scheduler_times_of_threads((consumer,)),
        scheduler_times_of_threads(threads),
        cpu_clock(),
        _gpu_clock(gpu),
    )


def device_in_use() -> int:
    """Returns the number of the calling thread's GPU; -1 if it uses none."""
    # not is_available(), which may start the driver: then processes cannot be forked any more
    return torch.cuda.current_device() if torch.cuda.is_initialized() else -1  # type: ignore[no-untyped-call]


def cpu_clock(root: Path = Path("/")) -> float:
    """Returns the clock in MHz of the fastest of some of this process's cores; 0 where the system does not tell, as in
    most virtual machines."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    clocks = []
    for core in cores[:: max(1, len(cores) // _SOME_CORES)][:_SOME_CORES]:
        try:
            clocks.append(int((root / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq").read_text()) / 1e3)
        except (OSError, ValueError):
            continue
    return max(clocks, default=0.0)


def _gpu_clock(device: int) -> float:
    """Returns the clock in MHz of a GPU's multiprocessors; 0 where NVIDIA's pynvml is missing. Not run on a GPU."""
    if device < 0 or importlib.util.find_spec("pynvml") is None:
        return 0.0
    try:
        return float(torch.cuda.clock_rate(device))
    except Exception:  # of the driver or of pynvml: then the clock is not known
        return 0.0
