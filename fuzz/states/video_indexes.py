"""The index of a video, and two ways to read a changed one. Needs PyAV."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import numpy as np

from headrace._media.video.index_encoding import decode_video, encode_video
from headrace._media.video.known_videos import KnownVideo
from headrace._media.video.packet_index import PacketIndex, Stream

_NAME, _SIZE = "5a" * 32, 10_000


def video_index() -> bytes:
    """The index of a video that decord describes."""
    count = 20
    stream = Stream("h264", b"\1avc", 98, 66, "yuv420p", (2, 2, 2, 0))
    numbers, sizes = np.arange(count), np.full(count, 7)
    is_key = numbers % 5 == 0
    index = PacketIndex(stream, 0, Fraction(1, 90), 3 * numbers, sizes, 9 * numbers, sizes, is_key, ~is_key, numbers)
    made = encode_video(_NAME, KnownVideo(index, (count, 30.0)))
    assert made is not None
    return made


def read_index(data: bytes) -> Any:
    """Reads what was found. Raises ValueError."""
    return decode_video(data, _NAME, _SIZE)


def read_signed_index(data: bytes) -> Any:
    """Reads one whose hash was made after it was changed, so that its content is parsed. Raises ValueError."""
    return read_index(data[:-32] + hashlib.sha256(data[:-32]).digest())
