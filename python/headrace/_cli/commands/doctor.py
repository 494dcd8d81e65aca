"""Checks everything that affects pixels and speed, and scans a dataset; reports problems with their remedies."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from headrace._base import control_group
from headrace._base.cores import usable_cores
from headrace._cli.commands.checks import gpu, machine, pixels
from headrace._cli.commands.checks.finding import Check, Finding
from headrace._cli.commands.inputs import GivenError, source_of
from headrace._cli.doctor import scan_summary
from headrace._cli.doctor.disk import cold_speed, files_of
from headrace._cli.doctor.scan import scan

_CHECKS: tuple[Check, ...] = (
    pixels.versions,
    pixels.torch_,
    pixels.pillow,
    pixels.pillow_libjpeg,
    pixels.pass_order,
    pixels.decoding,
    machine.kernels,
    machine.cores,
    machine.control_groups,
    machine.memory,
    machine.memory_limits,
    machine.shared_memory,
    machine.huge_pages,
    machine.open_files,
    pixels.torchvision,
    gpu.driver,
    gpu.gpu,
    gpu.nvjpeg,
)


def findings() -> Iterator[Finding]:
    """Yields the findings of all checks, in the order of the report."""
    for check in _CHECKS:
        yield check()


def run() -> int:
    """Prints the report about this machine. Returns the exit status: 1 if anything is wrong, 0 otherwise."""
    found = []
    for finding in findings():
        print(finding, flush=True)
        found.append(finding)
    wrong = sum(one.level == "wrong" for one in found)
    print(f"\n{wrong} of {len(found)} checks failed." if wrong else "\nNothing is wrong.")
    return 1 if wrong else 0


def run_dataset(text: str, workers: int | None, limit: int | None) -> int:
    """Scans a dataset, and prints what its files are and what to do.

    Args:
        text: what the user named.
        workers: number of native threads. None: one a core.
        limit: largest number of files, drawn at random. None: all.

    Returns:
        The exit status: 0 all files can be decoded, 1 some cannot, 2 there is no such dataset, 130 interrupted; what
        was scanned before an interrupt is printed.
    """
    try:
        source = source_of(text)
    except GivenError as error:
        print(f"headrace doctor: {error}", file=sys.stderr)
        return 2
    disk = cold_speed(files_of(source))
    found = scan(source, workers if workers is not None else usable_cores(), limit)
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit_bytes = control_group.memory_limit()
    for line in scan_summary.lines(found, disk):
        print(line)
    print()
    for advice in scan_summary.recommendations(found, disk, min(present, limit_bytes or present)):
        print(scan_summary.wrapped(advice))
    return 130 if found.interrupted else 1 if found.broken else 0
