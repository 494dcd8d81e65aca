"""Wanted frames of video files as RGB: from the index of the packets where there is one, else by torchcodec."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import av

from headrace._base.types import Array
from headrace._media.library_decoders import open_decoder
from headrace._media.video.clip_limits import Limits
from headrace._media.video.decoding_cost import CAME_FROM, DecodingCost, cost_of
from headrace._media.video.device_frames import DeviceFrames, decode_by_library
from headrace._media.video.frame_decoder import FrameDecoder, NotDecoded
from headrace._media.video.frame_times import FrameTimes, WantedFrames, frames_played_at
from headrace._media.video.index_encoding import torchcodecs_name
from headrace._media.video.kept_video import KeptVideo
from headrace._media.video.known_videos import KnownVideo, key_of, known_videos
from headrace._media.video.needed_bytes import fetch_packets, find_needed
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.rgb_frames import make_rgb
from headrace._media.video.video_files import learn_by_scan, learn_from_tables, read_whole
from headrace._storage.parts.sample_bytes import FileBytes, SampleBytes
from headrace._storage.video_indexes.shared_indexes import SharedIndexes

NO_LIMITS = Limits()

Decoded = TypeVar("Decoded")


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


def open_clip(
    file: str | SampleBytes,
    choose: Callable[[FrameTimes], WantedFrames],
    shared: SharedIndexes | None = None,
    limits: Limits = NO_LIMITS,
    on_device: DeviceFrames | None = None,
) -> Clip:
    """Decodes frames of the best video stream of a file.

    Args:
        file: its path, or its bytes.
        choose: returns the wanted frames, given torchcodec's metadata of the stream.
        shared: indexes of other processes; None: none.
        limits: of the threads that make clips.
        on_device: decodes them on a device; None: FFmpeg does.

    Raises:
        ValueError, RuntimeError, IndexError: torchcodec's, or that of `choose`.
        OSError: bytes that are no file of their own cannot be read.
    """
    opened = open_file(file) if isinstance(file, str) else file
    known, origin = _find_or_learn(file, opened, shared, limits)
    came = CAME_FROM[origin]
    wanted = choose(known.described)
    if isinstance(known.index, PacketIndex) and (numbers := _numbers_of(wanted, known.index, known.described)):
        index = known.index
        if on_device is not None:
            return _open_on_device(on_device, opened, wanted, (index, numbers), limits, came)
        decoder = FrameDecoder(index, opened.read, once=opened.is_far)
        try:
            made = _decode(lambda: decoder.decode(numbers), opened, index, numbers, limits)
        except (NotDecoded, OSError) as error:
            if isinstance(error, OSError) and opened.path is None:
                raise
            known_videos.add(key_of(opened, None), KnownVideo(str(error), known.described))
        else:
            codec, cost = index.stream.codec, cost_of(index, numbers, decoder.sent) + came
            mapped = index if opened.is_far else None  # only what it decodes is fetched
            return Clip(
                made,
                codec,
                lambda place: decode_by_library(opened, WantedFrames(numbers[place : place + 1]), mapped)[0],
                cost,
            )
    if on_device is not None:
        return _open_on_device(on_device, opened, wanted, None, limits, came)
    with _room_for_whole(opened, limits):
        held = read_whole(opened)
        with limits.decoding(opened.check_wanted):
            return _as_clip(decode_by_library(held, wanted)[0], came)


def _open_on_device(
    frames: DeviceFrames,
    file: SampleBytes,
    wanted: WantedFrames,
    known: tuple[PacketIndex, list[int]] | None,
    limits: Limits,
    came: DecodingCost,
) -> Clip:
    """Returns frames that a device decodes.

    Args:
        known: the index of the file, which then is not scanned, and the numbers of the wanted frames in it.
        came: what finding or learning the index has cost.
    """
    made = None
    if known is not None:
        index, numbers = known
        with contextlib.suppress(RuntimeError, ValueError, IndexError):  # a wrong index: torchcodec then scans the file
            made = _decode(lambda: frames.decode(file, WantedFrames(numbers), index), file, index, numbers, limits)
    if made is None:
        with _room_for_whole(file, limits):
            held = read_whole(file)
            with limits.decoding(file.check_wanted):
                made = frames.decode(held, wanted, None)
    pixels, fallback = made
    return _as_clip(pixels, came + DecodingCost(on_device=1, left_to_cpu=int(fallback)))


def _as_clip(pixels: Array, cost: DecodingCost) -> Clip:
    """Returns the clip of frames that are RGB already, uint8 (n, H, W, 3)."""
    return Clip(pixels, "", lambda place: pixels[place : place + 1], cost)


def learn_video(path: str, shared: SharedIndexes | None = None) -> tuple[KnownVideo, DecodingCost]:
    """Returns what is known of a file, which is scanned if it is not known, and where that comes from.

    Args:
        shared: see `open_clip`.

    Raises:
        ValueError, RuntimeError: torchcodec's.
    """
    known, origin = _find_or_learn(path, open_file(path), shared, NO_LIMITS)
    return known, CAME_FROM[origin]


def open_file(path: str) -> FileBytes:
    """Opens a file. Raises torchcodec's error if that cannot be done."""
    try:
        return FileBytes(path)
    except OSError:
        open_decoder("VideoDecoder", path)  # raises torchcodec's error
        raise


def _find_or_learn(
    said: str | SampleBytes, file: SampleBytes, shared: SharedIndexes | None, limits: Limits
) -> tuple[KnownVideo, str]:
    """Returns what is known of a file, and where that comes from; see `KeptVideo.origin`."""
    known = known_videos.find(key_of(file, None))
    if known is not None:
        return known, ""
    kept = KeptVideo(known_videos, shared, file, None, torchcodecs_name)
    with known_videos.turn(kept.key, file.check_wanted):
        return kept.find() or _learn(said, file, kept, limits), kept.origin


def _learn(said: str | SampleBytes, file: SampleBytes, kept: KeptVideo, limits: Limits) -> KnownVideo:
    file.check()
    known = learn_from_tables(file) if file.is_far else None
    if known is None:
        with _room_for_whole(file, limits):
            held = read_whole(file)
            with limits.decoding(file.check_wanted):
                known = learn_by_scan(held)
    if not isinstance(said, str) or file.path == said:  # it has not been replaced meanwhile
        kept.add(known)
    return known


def _room_for_whole(file: SampleBytes, limits: Limits) -> AbstractContextManager[None]:
    return limits.room(file.size if file.is_far else 0, file.check_wanted)


def _decode(
    decode: Callable[[], Decoded], file: SampleBytes, index: PacketIndex, numbers: Sequence[int], limits: Limits
) -> Decoded:
    """Returns what `decode` does, when the bytes of the frames with these numbers are here, and it is this thread's
    turn. Raises what fetching and decoding do."""
    if not file.is_far:
        with limits.decoding(file.check_wanted):
            return decode()
    needed = find_needed(file, index, numbers)
    with limits.room(needed.nbytes, file.check_wanted):
        fetch_packets(file, index, needed)
        with limits.decoding(file.check_wanted):
            return decode()


def _numbers_of(wanted: WantedFrames, index: PacketIndex, video: FrameTimes) -> list[int] | None:
    """Returns the numbers of the wanted frames; None if one is not in the stream."""
    numbers = wanted.numbers
    if numbers is None and wanted.seconds is not None:
        numbers = frames_played_at(index, video, wanted.seconds)
    return numbers if numbers and min(numbers) >= 0 and max(numbers) < len(index) else None
