"""Calls for open files that only Linux has, and what is done elsewhere."""

from __future__ import annotations

import os
from pathlib import Path


def drop_page_cache(file: int, begin: int, length: int) -> None:
    """Asks the system to drop a part of an open file from memory; elsewhere does nothing."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, begin, length, os.POSIX_FADV_DONTNEED)


def is_cached(file: int, at: int) -> bool | None:
    """Returns whether a byte of an open file can be read without its disk; None if the system does not report it."""
    try:
        return os.preadv(file, [bytearray(1)], at, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    except (OSError, AttributeError):  # such as tmpfs, and systems without RWF_NOWAIT
        return None


def path_of_open_file(file: int, root: Path = Path("/")) -> Path:
    """Returns a path that opens an open file again, which needs no name; elsewhere one that duplicates its descriptor.

    Args:
        root: root of the file system, which holds ``proc/self/fd`` on Linux.
    """
    folder = root / "proc/self/fd"
    return (folder if folder.is_dir() else root / "dev/fd") / str(file)
