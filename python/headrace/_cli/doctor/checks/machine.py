"""Checks of the machine: instruction sets, cores, memory, limits of the process and of its control groups."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

from headrace._base import control_group
from headrace._base import cores as base_cores
from headrace._base.native import core
from headrace._cli.doctor.checks.finding import Finding, means

_FEW_FILES = 256  # descriptors; torch's own loader and a training run together need more
_SMALL_SHM = 2**30  # bytes: several batches of 40 MB for each of torch's workers


@means("SIMD level of the inner loops: wider is faster, the pixels are the same.")
def kernels() -> Finding:
    asked = os.environ.get("HEADRACE_ISA")
    chosen = core.instruction_set()
    if asked:
        return Finding("note", "kernels", f"{chosen}, because HEADRACE_ISA={asked}", "unset it for the fastest ones")
    if chosen == "scalar":
        return Finding(
            "note", "kernels", "scalar: this processor has neither AVX2 nor AVX-512; slower, the same pixels"
        )
    lanes = core.row_lanes()
    return Finding("ok", "kernels", f"{chosen}; rows of JPEGs {lanes} side by side" if lanes else chosen)


@means("Affinity and quota of this process; native threads beyond them gain little.")
def cores() -> Finding:
    allowed, present, quota = base_cores.allowed_cores(), os.cpu_count() or 1, control_group.cpu_quota()
    if quota is not None and quota < allowed:
        text = f"{allowed} of {present} may be used, but the control group has a quota of {quota:g}"
        return Finding(
            "note", "cores", text, f"num_workers={base_cores.usable_cores()} is enough; more threads are throttled"
        )
    text = f"{allowed} of {present} may be used"
    return Finding("ok", "cores", f"{text}; num_workers={allowed} uses them all")


@means("Memory of batches in large pages costs fewer page faults.")
def huge_pages() -> Finding:
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return Finding("note", "huge pages", "not known to this kernel; batches use small pages")
    setting = text[text.index("[") + 1 : text.index("]")]
    if setting == "never":
        remedy = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        return Finding("note", "huge pages", "never: batches use small pages, first epochs are slower", remedy)
    return Finding("ok", "huge pages", setting)


@means("Each native thread has a file open; torch's workers pass tensors as files.")
def open_files() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FEW_FILES:
        return Finding("note", "open files", f"at most {soft}; headrace opens one a thread", "ulimit -n 4096")
    shown = "any number" if soft == resource.RLIM_INFINITY else f"at most {soft}"
    return Finding("ok", "open files", f"{shown}; headrace opens one a thread")


@means("Beyond it the kernel ends the process; batches in flight: prefetch_factor + 1.")
def memory() -> Finding:
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = control_group.memory_limit()
    if limit is not None and limit < present:
        text = f"{limit / 2**30:.1f} GiB for the control group, of {present / 2**30:.1f} GiB"
        return Finding("note", "memory", text, "files in the page cache count, too, but are given up first")
    return Finding("ok", "memory", f"{present / 2**30:.1f} GiB, without a limit for this process")


@means("Containers limit CPUs by a set, or by a quota that stops threads once used up.")
def control_groups() -> Finding:
    version = control_group.version()
    if not version:
        return Finding("ok", "control group", "none")
    cpus = control_group.cpu_set()
    quota = control_group.cpu_quota()
    parts = [f"version {version}", f"CPUs {cpus}" if cpus else "CPUs unknown"]
    parts.append("no CPU quota" if quota is None else f"CPU quota {quota:g}")
    return Finding("ok", "control group", ", ".join(parts))


@means("torch's worker processes pass batches in it; native threads need none.")
def shared_memory() -> Finding:
    try:
        total, _, free = shutil.disk_usage("/dev/shm")
    except OSError:
        return Finding("note", "shared memory", "there is no /dev/shm: torch's DataLoader cannot use worker processes")
    text = f"{free / 2**30:.2f} GiB of {total / 2**30:.2f} GiB free in /dev/shm"
    if free < _SMALL_SHM:
        return Finding("note", "shared memory", text, "docker run --shm-size=8g, where torch's loader delivers")
    return Finding("ok", "shared memory", text)


@means("Pinned memory and mapped files count against these limits on some systems.")
def memory_limits() -> Finding:
    shown, low = [], False
    for name, number in (("address space", resource.RLIMIT_AS), ("locked", resource.RLIMIT_MEMLOCK)):
        soft, _ = resource.getrlimit(number)
        shown.append(f"{name} {'unlimited' if soft == resource.RLIM_INFINITY else f'{soft / 2**20:,.0f} MiB'}")
        low = low or (number == resource.RLIMIT_AS and soft != resource.RLIM_INFINITY)
    if low:
        return Finding("note", "ulimits", ", ".join(shown), "ulimit -v unlimited: large mapped files need addresses")
    return Finding("ok", "ulimits", ", ".join(shown))
