"""Indexes of the videos that this process has read, within a limit of memory; noticed when a file changes."""

from __future__ import annotations

import collections
import os
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace._media.video.packet_index import PacketIndex
from headrace._storage.parts.sample_bytes import SampleBytes

LIMIT_BYTES = 64 << 20
_PER_ENTRY = 1024  # of a file that has no index, and of the table itself

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


class KnownVideos:
    """The videos known in a process. For any thread.

    Args:
        limit: of the memory of the indexes, in bytes. Those that were used longest ago are dropped.
    """

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit, self._bytes = limit, 0
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[VideoKey, KnownVideo] = collections.OrderedDict()

    def forget_lock(self) -> None:
        """Called in a forked child: a thread of the parent may have held the lock."""
        self._lock = threading.Lock()

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


known_videos = KnownVideos()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=known_videos.forget_lock)
