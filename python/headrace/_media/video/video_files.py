"""A video's file that stays open, and the index that is learned of it where torchcodec finds the same frames."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import av
import numpy as np

from headrace._base.lifetimes.finalizers import Ending
from headrace._media.video.frame_times import seconds_of
from headrace._media.video.packet_index import NotIndexed, PacketIndex, read_index


class VideoFile(Ending):
    """A file that stays open: it may be removed before frames are read.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.at_end = functools.partial(os.close, self._descriptor)
        self.status: os.stat_result = os.fstat(self._descriptor)

    def read(self, position: int, count: int) -> bytes:
        """Returns up to `count` bytes from a position on."""
        return os.pread(self._descriptor, count, position)

    @property
    def path(self) -> str:
        """Where the same file can be opened."""
        try:
            now = Path(self._path).stat()
        except OSError:
            now = None
        same = now is not None and os.path.samestat(now, self.status)
        return self._path if same else f"/proc/self/fd/{self._descriptor}"


def index_or_reason(path: str, stream_index: int | None = None) -> PacketIndex | str:
    """Returns what `read_index` does; or why it raises."""
    try:
        return read_index(path, stream_index)
    except NotIndexed as reason:
        return str(reason)
    except (av.FFmpegError, OSError) as error:
        return f"PyAV cannot read it: {error}"


def learn_index(path: str, stream_index: int, metadata: Any) -> PacketIndex | str:
    """Returns the index of a stream that torchcodec has scanned; or why it has none.

    Args:
        metadata: torchcodec's, of this stream.
    """
    index = index_or_reason(path, stream_index)
    if isinstance(index, str):
        return index
    if not _agrees(index, metadata):
        return "PyAV finds other frames than torchcodec"
    return index if index.is_rounded else "of a variable frame rate"  # FFmpeg's versions give other durations


def _agrees(index: PacketIndex, metadata: Any) -> bool:
    """Whether torchcodec found the same frames, which are shown as they are stored."""
    ends = index.pts + index.duration
    seconds = seconds_of(index, np.array([index.pts.min(), ends.max()]))
    said = metadata.begin_stream_seconds_from_content, metadata.end_stream_seconds_from_content
    size = metadata.height, metadata.width
    return (
        metadata.num_frames == len(index)
        and said == tuple(seconds.tolist())
        and size == (index.stream.height, index.stream.width)
        and not metadata.rotation
    )
