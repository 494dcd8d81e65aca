"""Indexes of the videos that this process has read, within a limit of memory; noticed when a file changes."""

from __future__ import annotations

import collections
import contextlib
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from headrace._media.video.packet_index import PacketIndex
from headrace._storage.parts.sample_bytes import SampleBytes

LIMIT_BYTES = 64 << 20
_PER_ENTRY = 1024  # of a file that has no index, and of the table itself
_STEP_S = 0.02  # between looks at whether a thread still has to wait

#: What names the bytes of a file, as `SampleBytes.key`; and the stream in it.
VideoKey: TypeAlias = "tuple[Hashable, int | None]"


@dataclass(frozen=True, eq=False)
class KnownVideo:
    """What is known of a stream.

    Attributes:
        index: of its packets; or why it has none.
        described: what torchcodec said of it when it scanned the file: its metadata.
    """

    index: PacketIndex | str
    described: Any

    @property
    def nbytes(self) -> int:
        return _PER_ENTRY + (self.index.nbytes if isinstance(self.index, PacketIndex) else 0)


def key_of(file: SampleBytes, stream_index: int | None) -> VideoKey:
    """Returns what names a stream of a file."""
    return file.key, stream_index


@dataclass(eq=False)
class _Turn:
    """Which thread learns a stream; `users` hold it or wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class KnownVideos:
    """The videos known in a process. For any thread.

    Args:
        limit: of the memory of the indexes, in bytes. Those that were used longest ago are dropped.
    """

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit, self._bytes = limit, 0
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[VideoKey, KnownVideo] = collections.OrderedDict()
        self._turns: dict[VideoKey, _Turn] = {}

    def forget_locks(self) -> None:
        """Called in a forked child: threads of the parent may have held the locks."""
        self._lock, self._turns = threading.Lock(), {}

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the indexes take."""
        return self._bytes

    def find(self, key: VideoKey) -> KnownVideo | None:
        """Returns what is known of a stream."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def add(self, key: VideoKey, video: KnownVideo) -> None:
        """Keeps what is known of a stream, if there is room for it."""
        with self._lock:
            before = self._known.pop(key, None)
            self._bytes += video.nbytes - (0 if before is None else before.nbytes)
            self._known[key] = video
            while self._bytes > self._limit:
                _, dropped = self._known.popitem(last=False)
                self._bytes -= dropped.nbytes

    @contextlib.contextmanager
    def turn(self, key: VideoKey, check: Callable[[], None]) -> Iterator[None]:
        """Lets one thread at a time learn a stream: the others wait, and then find it.

        Args:
            check: called now and then in a thread that waits; what it raises ends the wait.
        """
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.users += 1
        try:
            while not turn.lock.acquire(timeout=_STEP_S):
                check()
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            with self._lock:
                turn.users -= 1
                if not turn.users and self._turns.get(key) is turn:
                    del self._turns[key]


known_videos = KnownVideos()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=known_videos.forget_locks)
