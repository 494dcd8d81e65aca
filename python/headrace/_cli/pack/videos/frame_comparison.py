"""Whether two video files show the same frames at the same times; or how far they differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import av
import numpy as np

from headrace._base.safe_exceptions import message_of
from headrace._base.types import Array
from headrace._media.library_decoders import NoTorchcodec, open_decoder

_AT_ONCE = 1 << 26  # bytes of frames in memory, of each file
_LOST = "torchcodec would not deliver all frames of the result"

#: Frames, uint8 (n, C, H, W) or (n, H, W, C), and when they are shown, in seconds.
_Frames: TypeAlias = "tuple[Array, list[float] | list[Fraction]]"


class Unequal(ValueError):
    """Two videos differ in what they must not differ in; the message says in what."""


class _NotDelivered(Exception):
    """torchcodec does not deliver all frames of a file, or not in their order."""


@dataclass(frozen=True)
class Compared:
    """What two videos have in common.

    Attributes:
        frames: number of frames that were compared.
        by_pyav: whether PyAV decoded them, because torchcodec does not deliver all frames of the source.
        squared_error: mean over all values of RGB, of 255 levels.
    """

    frames: int
    by_pyav: bool
    squared_error: float

    @property
    def psnr(self) -> float:
        """Peak signal-to-noise ratio in dB; infinite of equal frames."""
        return math.inf if self.squared_error == 0 else 10 * math.log10(255**2 / self.squared_error)


def compare_videos(source: Path | bytes, made: Path | bytes) -> Compared:
    """Compares all frames of the best streams of two files as torchcodec decodes them.

    Of transport and program streams, torchcodec may not deliver the first or the last frames: PyAV decodes both files
    where the source is such. torchcodec must deliver all frames of the result in any case.

    Raises:
        Unequal: the numbers, sizes or times (pts) of their frames differ, a file cannot be decoded, or torchcodec does
            not deliver all frames of the result.
        NoTorchcodec: torchcodec cannot be imported.
    """
    ours, theirs = _open(source, "the source"), _open(made, "the result")
    if ours.metadata.rotation != theirs.metadata.rotation:
        raise Unequal("the frames would be turned by another angle")
    try:
        return _compare(_frames_of(ours), _frames_of_result(theirs), False)
    except _NotDelivered:
        pass
    try:
        compared = _compare(_frames_by_pyav(source), _frames_by_pyav(made), True)
    except (av.FFmpegError, ValueError) as error:
        if isinstance(error, Unequal):
            raise
        raise Unequal(f"it cannot be decoded: {message_of(error)}") from error
    if sum(len(times) for _, times in _frames_of_result(theirs)) != compared.frames:
        raise Unequal(_LOST)
    return compared


def _compare(ours: Iterator[_Frames], theirs: Iterator[_Frames], by_pyav: bool) -> Compared:
    frames, values, error = 0, 0, 0.0
    for wanted, found in itertools.zip_longest(ours, theirs):
        if wanted is None or found is None or len(wanted[0]) != len(found[0]):
            raise Unequal("the number of frames would be another one")
        if wanted[0].shape != found[0].shape:
            raise Unequal("the frames would have another size")
        if wanted[1] != found[1]:
            raise Unequal("the frames would be shown at other times")
        if not np.array_equal(wanted[0], found[0]):
            differences = wanted[0].astype(np.int32) - found[0]
            error += float(np.square(differences).sum(dtype=np.int64))
        frames, values = frames + len(wanted[0]), values + wanted[0].size
    if not frames:
        raise Unequal("it has no frames")
    return Compared(frames, by_pyav, error / values)


def _open(video: Path | bytes, name: str) -> Any:
    try:
        source = video if isinstance(video, bytes) else str(video)
        return open_decoder("VideoDecoder", source, num_ffmpeg_threads=1)
    except NoTorchcodec:
        raise
    except (RuntimeError, ValueError) as error:
        raise Unequal(f"{name} cannot be decoded: {message_of(error)}") from error


def _frames_of(decoder: Any) -> Iterator[_Frames]:
    """Yields all frames, some at a time. Raises _NotDelivered."""
    said = decoder.metadata
    count, step = len(decoder), max(1, _AT_ONCE // (3 * said.height * said.width))
    for begin in range(0, count, step):
        try:
            made = decoder.get_frames_in_range(begin, min(count, begin + step))
        except RuntimeError as error:
            raise _NotDelivered from error
        times = made.pts_seconds.tolist()
        if begin == 0 and times[0] != said.begin_stream_seconds_from_content:
            raise _NotDelivered
        yield made.data.numpy(), times


def _frames_of_result(decoder: Any) -> Iterator[_Frames]:
    """Yields all frames of a result, some at a time. Raises Unequal."""
    try:
        yield from _frames_of(decoder)
    except _NotDelivered as error:
        raise Unequal(_LOST) from error


def _frames_by_pyav(video: Path | bytes) -> Iterator[_Frames]:
    """Yields all frames, one at a time."""
    with av.open(BytesIO(video) if isinstance(video, bytes) else str(video), metadata_errors="ignore") as container:
        stream = container.streams.best("video")
        if stream is None:
            return
        for frame in container.decode(stream):
            assert isinstance(frame, av.VideoFrame)
            if frame.pts is None or frame.time_base is None:
                raise Unequal("a frame without a time")
            yield frame.to_ndarray(format="rgb24")[None], [frame.pts * frame.time_base]
