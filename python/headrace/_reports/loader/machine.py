"""Facts about the machine and the libraries that a reader needs to judge a figure."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import PIL
import torch

from headrace._base import control_group, cores
from headrace._base.native import core
from headrace._base.version import __version__


def describe_machine() -> dict[str, object]:
    """Returns the processor, cores, memory and versions, as values for JSON. `quota` is in CPUs, or None."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count() or 1,
        "usable_cores": cores.usable_cores(),
        "quota": control_group.cpu_quota(),
        "kernels": core.instruction_set(),
        "memory_gib": round(memory / 2**30, 1),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "headrace": __version__,
        "torch": torch.__version__,
        "Pillow": PIL.__version__,
        "libjpeg-turbo": core.libjpeg_version(),
    }


def cpu_name() -> str:
    """Returns the processor's name as reported by the system."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def warning_if_busy() -> str | None:
    """Returns a sentence if more programs want to run than there are cores; None otherwise."""
    waiting, present = os.getloadavg()[0], os.cpu_count() or 1
    if waiting <= present + 1:
        return None
    return f"This machine is busy (load {waiting:.1f} on {present} cores): the figures are unreliable."
