"""A file object whose reads are spans of bytes that are elsewhere."""

from __future__ import annotations

import io
import os
from abc import abstractmethod
from typing import Any


class SpanFile(io.RawIOBase):
    """Bytes as a file for reading.

    Args:
        size: number of bytes.
    """

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns `size` bytes, fewer at the end; all that are left if it is None or negative."""
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        data = self._read_span(self._at, end) if self._at < end else b""
        self._at += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        made = self.read(len(view))
        view[: len(made)] = made
        return len(made)

    @abstractmethod
    def _read_span(self, begin: int, end: int) -> bytes:
        """Returns the bytes from `begin` to `end`, which is larger."""
