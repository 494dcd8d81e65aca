"""Limits of threads that make clips of videos in other machines: most of them wait for bytes, and few decode."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

_STEP_S = 0.02  # between looks at whether a thread still has to wait


class Limits:
    """No limits: of threads that read this machine's files, each of which decodes."""

    def decoding(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Returns a context in which a thread decodes, when it is its turn.

        Args:
            check: called now and then while it waits; what it raises ends the wait.
        """
        return nullcontext()

    def room(self, count: int, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Returns a context in which a thread fetches `count` bytes, when there is room for them, and uses them. It
        must not ask for more inside. `check`: see `decoding`."""
        return nullcontext()

    def resize(self, decoders: int) -> None:
        """Allows this many threads to decode."""


class ClipLimits(Limits):
    """How many threads decode at the same time, and how many bytes all of them have fetched and not decoded.

    Args:
        decoders: most threads that decode, 1 or more.
        most_bytes: that are fetched; one clip may take more.
    """

    def __init__(self, decoders: int, most_bytes: int) -> None:
        self._changed = threading.Condition()
        self._decoders, self._decoding = decoders, 0
        self._most_bytes, self._bytes = most_bytes, 0

    def resize(self, decoders: int) -> None:
        with self._changed:
            self._decoders = decoders
            self._changed.notify_all()

    @contextmanager
    def decoding(self, check: Callable[[], None]) -> Iterator[None]:
        with self._changed:
            self._wait_until(lambda: self._decoding < self._decoders, check)
            self._decoding += 1
        try:
            yield
        finally:
            with self._changed:
                self._decoding -= 1
                self._changed.notify_all()

    @contextmanager
    def room(self, count: int, check: Callable[[], None]) -> Iterator[None]:
        with self._changed:
            self._wait_until(lambda: self._bytes == 0 or self._bytes + count <= self._most_bytes, check)
            self._bytes += count
        try:
            yield
        finally:
            with self._changed:
                self._bytes -= count
                self._changed.notify_all()

    def _wait_until(self, is_free: Callable[[], bool], check: Callable[[], None]) -> None:
        while not is_free():
            self._changed.wait(_STEP_S)
            check()
