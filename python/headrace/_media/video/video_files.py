"""A video's file that stays open, and the index that is learned of it where torchcodec finds the same frames."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import av
import numpy as np

from headrace._base.lifetimes.finalizers import Ending
from headrace._base.types import Array
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


def learn_index(path: str, stream_index: int, metadata: Any) -> PacketIndex | str:
    """Returns the index of a stream that torchcodec has scanned; or why it has none.

    Args:
        metadata: torchcodec's, of this stream.
    """
    try:
        index = read_index(path, stream_index)
    except NotIndexed as reason:
        return str(reason)
    except (av.FFmpegError, OSError) as error:
        return f"PyAV cannot read it: {error}"
    if not _agrees(index, metadata):
        return "PyAV finds other frames than torchcodec"
    return index if index.is_regular else "of a variable frame rate"  # FFmpeg's versions give other durations


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


def seconds_of(index: PacketIndex, times: Array) -> Array:
    """Returns times of a stream in seconds as torchcodec rounds them: the product first."""
    made: Array = times.astype(np.float64) * index.time_base.numerator / index.time_base.denominator
    return made


def frames_played_at(index: PacketIndex, begin: float, end: float, seconds: list[float]) -> list[int] | None:
    """Returns the numbers of the frames that are shown at these times; None if one is outside the stream.

    Args:
        begin, end: of the stream in seconds, as torchcodec says.
    """
    if not all(begin <= one < end for one in seconds):  # also not a number
        return None
    begins = seconds_of(index, index.pts[index.order])
    found: list[int] = np.searchsorted(begins[1:], seconds, side="right").tolist()
    return found
