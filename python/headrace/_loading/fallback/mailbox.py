"""What a worker process leaves for the main process, which may read it at any time, also after the worker has ended.

A queue would not do: a worker that ends while it sends a large message leaves half of it, and the reader waits for the
rest for ever, because other processes hold the queue open.
"""

from __future__ import annotations

import functools
import os
import struct
import tempfile
from multiprocessing.reduction import DupFd
from typing import Any

from headrace._base.lifetimes.finalizers import Ending

_HEAD = struct.Struct("<qq")  # epoch of the message, or 0; number of its bytes
_NOTHING = -1  # in place of the number: the message is that there is none
_MOST = 1 << 30  # bytes of one call: Linux moves at most 2 GB


class Mailbox(Ending):
    """Memory for one message of one process, in a file without a name.

    The message's header is written last, in one call. So a reader sees the whole message or none.

    Args:
        descriptor: the file. None: a new one.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = _new_file() if descriptor is None else descriptor
        self.at_end = functools.partial(os.close, self._descriptor)

    def __reduce__(self) -> tuple[object, ...]:
        return _open_mailbox, (DupFd(self._descriptor),)

    def put(self, epoch: int, content: bytes | None) -> None:
        """Leaves the message of an epoch, counted from 1, in place of any other. Raises OSError without memory."""
        os.pwrite(self._descriptor, _HEAD.pack(0, 0), 0)
        if content is not None:
            os.ftruncate(self._descriptor, _HEAD.size)  # frees what a larger message took
            rest, at = memoryview(content), _HEAD.size
            while rest:
                written = os.pwrite(self._descriptor, rest[:_MOST], at)
                rest, at = rest[written:], at + written
        os.pwrite(self._descriptor, _HEAD.pack(epoch, _NOTHING if content is None else len(content)), 0)

    def get(self, epoch: int) -> tuple[bool, bytes | None]:
        """Returns whether the message of an epoch is here, and its content."""
        head = os.pread(self._descriptor, _HEAD.size, 0)
        if len(head) < _HEAD.size:
            return False, None
        found, size = _HEAD.unpack(head)
        if found != epoch:
            return False, None
        return True, None if size == _NOTHING else self._read(size)

    def _read(self, size: int) -> bytes:
        parts, at = [], _HEAD.size
        while size and (part := os.pread(self._descriptor, min(size, _MOST), at)):
            parts.append(part)
            size, at = size - len(part), at + len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _new_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("headrace")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _open_mailbox(descriptor: Any) -> Mailbox:
    """Returns the mailbox in the process that it was sent to."""
    return Mailbox(descriptor.detach())
