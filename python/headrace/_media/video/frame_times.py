"""When the frames of a video are shown, and which of them a program wants: by their numbers or by times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from headrace._base.types import Array

if TYPE_CHECKING:
    from headrace._media.video.packet_index import PacketIndex


class FrameTimes(Protocol):
    """What is asked of torchcodec's metadata of a stream."""

    @property
    def num_frames(self) -> int | None: ...

    @property
    def average_fps(self) -> float | None: ...

    @property
    def begin_stream_seconds(self) -> float: ...

    @property
    def end_stream_seconds(self) -> float | None: ...


@dataclass(frozen=True)
class WantedFrames:
    """Frames of a video in a given order: by their numbers, or by the times in seconds at which they are shown."""

    numbers: list[int] | None = None
    seconds: list[float] | None = None


def seconds_of(index: PacketIndex, times: Array) -> Array:
    """Returns times of a stream in seconds as torchcodec rounds them: the product first."""
    made: Array = times.astype(np.float64) * index.time_base.numerator / index.time_base.denominator
    return made


def frames_played_at(index: PacketIndex, video: FrameTimes, seconds: list[float]) -> list[int] | None:
    """Returns the numbers of the frames that are shown at these times; None if one is outside the stream."""
    begin, end = video.begin_stream_seconds, video.end_stream_seconds
    if end is None or not all(begin <= one < end for one in seconds):  # also not a number
        return None
    begins = seconds_of(index, index.pts[index.order])
    found: list[int] = np.searchsorted(begins[1:], seconds, side="right").tolist()
    return found
