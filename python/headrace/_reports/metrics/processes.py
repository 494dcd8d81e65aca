"""Facts about processes, from /proc."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """A process that has not ended.

    Attributes:
        started: when it began, in clock ticks since the machine started. With the number it identifies the process:
            numbers are used again.
    """

    pid: int
    parent: int
    started: int


def find_process(pid: int) -> Process | None:
    """Returns the process with a number; None if there is none, it has ended, or it is hidden from this user."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    state, *values = text.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
    return None if state in "ZX" else Process(pid, int(values[0]), int(values[18]))


def owner_of_process(pid: int) -> int | None:
    """Returns the user that a process runs as; None if there is no such process."""
    try:
        return (_PROC / str(pid)).stat().st_uid
    except OSError:
        return None


def command_of_process(pid: int) -> str:
    """Returns the command line of a process; "" if it is not known."""
    try:
        raw = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return " ".join(raw.decode(errors="replace").rstrip("\0").split("\0"))


def is_descendant(pid: int, ancestor: int) -> bool:
    """Returns whether a process was started by another one, or by processes that this one started."""
    known: Process | None = find_process(pid)
    while known is not None and known.parent > 0:
        if known.parent == ancestor:
            return True
        known = find_process(known.parent)
    return False


def pid_namespace() -> int:
    """Returns a number that this process shares with those whose numbers it can see, and with no other container or
    machine: these may share a folder, and use the same numbers. 0 if unknown."""
    try:
        inode = (_PROC / "self/ns/pid").stat().st_ino
    except OSError:
        return 0
    try:  # the first namespace of all machines has one inode
        boot = int((_PROC / "sys/kernel/random/boot_id").read_text()[:8], 16)
    except (OSError, ValueError):
        boot = 0
    return inode << 32 | boot
