"""Wanted frames of video files as RGB: from the index of the packets where there is one, else by torchcodec."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import av
import numpy as np

from headrace._base.types import Array
from headrace._media.library_decoders import open_decoder
from headrace._media.video.decoding_cost import DecodingCost, cost_of
from headrace._media.video.frame_decoder import FrameDecoder, NotDecoded
from headrace._media.video.frame_times import FrameTimes, WantedFrames, frames_played_at
from headrace._media.video.known_videos import KnownVideo, VideoKey, key_of, known_videos
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.rgb_frames import make_rgb
from headrace._media.video.video_files import VideoFile, learn_index


class Clip:
    """Wanted frames of a video, decoded. Any thread may read any of them.

    Args:
        made: the frames, by FFmpeg; or their RGB, uint8 (n, H, W, 3).
        codec: of the stream.
        by_library: returns one of the frames as torchcodec makes it, (1, H, W, 3).
        cost: what decoding them took; unknown of torchcodec's.
    """

    def __init__(
        self,
        made: Sequence[av.VideoFrame] | Array,
        codec: str,
        by_library: Callable[[int], Array],
        cost: DecodingCost | None = None,
    ) -> None:
        self._made, self._codec, self._by_library = made, codec, by_library
        self.cost = cost or DecodingCost()

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, place: int) -> Array:
        """Returns the RGB of a frame, uint8 (H, W, 3)."""
        frame = self._made[place]
        if isinstance(frame, av.VideoFrame):
            made: Array = make_rgb(self._codec, [frame], lambda: self._by_library(place))[0]
            return made
        rgb: Array = frame
        return rgb


def open_clip(path: str, choose: Callable[[FrameTimes], WantedFrames]) -> Clip:
    """Decodes frames of the best video stream of a file.

    Args:
        choose: returns the wanted frames, given torchcodec's metadata of the stream.

    Raises:
        ValueError, RuntimeError, IndexError: torchcodec's, or that of `choose`.
    """
    file = _open_file(path)
    key, known = _find_or_learn(path, file)
    wanted = choose(known.described)
    if isinstance(known.index, PacketIndex) and (numbers := _numbers_of(wanted, known.index, known.described)):
        decoder = FrameDecoder(known.index, file.read)
        try:
            made = decoder.decode(numbers)
        except (NotDecoded, OSError) as error:
            known_videos.add(key, KnownVideo(str(error), known.described))
        else:
            codec, cost = known.index.stream.codec, cost_of(known.index, numbers, decoder.sent)
            return Clip(made, codec, lambda place: _by_library(file, WantedFrames(numbers[place : place + 1])), cost)
    whole = _by_library(file, wanted)
    return Clip(whole, "", lambda place: whole[place : place + 1])


def learn_video(path: str) -> KnownVideo:
    """Returns what is known of a file, which is scanned if it is not known.

    Raises:
        ValueError, RuntimeError: torchcodec's.
    """
    return _find_or_learn(path, _open_file(path))[1]


def _open_file(path: str) -> VideoFile:
    try:
        return VideoFile(path)
    except OSError:
        _open_decoder(path)  # raises torchcodec's error
        raise


def _find_or_learn(path: str, file: VideoFile) -> tuple[VideoKey, KnownVideo]:
    key = key_of(file.status, None)
    return key, known_videos.find(key) or _learn(path, file, key)


def _learn(path: str, file: VideoFile, key: VideoKey) -> KnownVideo:
    decoder = _open_decoder(file.path)
    described = copy.copy(decoder.metadata)
    known = KnownVideo(learn_index(file.path, decoder.stream_index, described), described)
    if file.path == path:  # it has not been replaced meanwhile
        known_videos.add(key, known)
    return known


def _numbers_of(wanted: WantedFrames, index: PacketIndex, video: FrameTimes) -> list[int] | None:
    """Returns the numbers of the wanted frames; None if one is not in the stream."""
    numbers = wanted.numbers
    if numbers is None and wanted.seconds is not None:
        numbers = frames_played_at(index, video, wanted.seconds)
    return numbers if numbers and min(numbers) >= 0 and max(numbers) < len(index) else None


def _by_library(file: VideoFile, wanted: WantedFrames) -> Array:
    """Returns frames as torchcodec makes them, uint8 (n, H, W, 3)."""
    decoder = _open_decoder(file.path)
    if wanted.numbers is None:
        frames = decoder.get_frames_played_at(wanted.seconds)
    else:
        frames = decoder.get_frames_at(wanted.numbers)
    return np.ascontiguousarray(frames.data.numpy())


def _open_decoder(path: str) -> Any:
    """Returns a new decoder of torchcodec's, as a program that opens one for each sample has."""
    return open_decoder("VideoDecoder", path, dimension_order="NHWC", num_ffmpeg_threads=1)
