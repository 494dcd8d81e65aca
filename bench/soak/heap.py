"""The bytes that a process has allocated and not freed: these grow with a leak, and not with gaps between them."""

from __future__ import annotations

import ctypes
import sys

_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
_BYTES_A_BLOCK = 92  # of Python's own allocator: 54.7 MB in 597,000 blocks once torch and headrace are imported


class _Info(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)


def trimmed() -> int | None:
    """Gives the free pages of malloc's heaps back to the system. Returns the bytes in use in all of them, with an
    estimate of those of Python's small objects; None where libc does not tell (glibc before 2.33, other libraries)."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2") or not hasattr(libc, "malloc_trim"):
        return None
    libc.malloc_trim(0)
    libc.mallinfo2.restype = _Info
    info = libc.mallinfo2()
    return int(info.uordblks) + int(info.hblkhd) + _BYTES_A_BLOCK * sys.getallocatedblocks()
