"""Frames of decord's VideoReader, decoded from an index of the file's packets.

Only where decord's frames are those of the file: what it returns of an open group of pictures depends on what was
read before.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import av
import numpy as np

from headrace._base.types import Array
from headrace._media.video.frame_decoder import FrameDecoder, NotDecoded
from headrace._media.video.kept_video import KeptVideo
from headrace._media.video.known_videos import KnownVideo, VideoKey, known_videos
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.rgb_frames import make_rgb
from headrace._media.video.video_files import index_or_reason
from headrace._storage.parts.sample_bytes import FileBytes
from headrace.pillow.recording.image_counts import Door, ImageCounts

_OF_DECORD = -1  # in keys: no stream of a file has this number, and torchcodec describes others
_CODECS = ("h264", "hevc")


class FrameSource:
    """A file that is decoded from its index.

    Args:
        described: what decord says of it: the number of frames, and of frames a second.
    """

    def __init__(self, key: VideoKey, index: PacketIndex, described: Any, file: FileBytes, door: Door) -> None:
        self._key, self._index, self.described, self.file, self._door = key, index, described, file, door
        self._decoder = FrameDecoder(index, file.read)

    def __len__(self) -> int:
        return len(self._index)

    def make(
        self, numbers: Sequence[int], counts: ImageCounts, by_decord: Callable[[Sequence[int]], Array]
    ) -> Array | None:
        """Returns frames, uint8 (number, H, W, 3); None: decord decodes the file from now on.

        Args:
            numbers: at least one, each 0 or more and less than the number of frames.
            by_decord: returns them as decord decodes them.
        """
        try:
            decoded = self._decoder.decode(numbers)
        except (NotDecoded, OSError) as error:
            known_videos.add(self._key, KnownVideo(str(error), self.described))
            counts.count(str(error), self._door)
            return None
        codec = f"{self._index.stream.codec} by decord"
        made = make_rgb(codec, decoded, lambda: by_decord(numbers))
        counts.count(None, self._door)
        return made


def find_frames(
    path: str, describe: Callable[[], tuple[int, float] | None], counts: ImageCounts, door: Door
) -> FrameSource | None:
    """Returns a source of a file's frames; None: decord decodes them, or says what is wrong with the file.

    Args:
        describe: returns what decord says of the file, None if that cannot be read; called where it is not known.
    """
    try:
        file = FileBytes(path)
    except OSError:
        return None
    kept = KeptVideo(known_videos, counts.indexes, file, _OF_DECORD, _decords_name)
    known = kept.find()
    if known is None:
        described = describe()
        if described is None:
            return None
        known = KnownVideo(_learn(path, described[0]), described)
        if file.path != path:  # it has been replaced meanwhile
            return None
        kept.add(known)
    counts.count_index(kept.origin)
    if isinstance(known.index, str):
        counts.count(known.index, door)
        return None
    return FrameSource(kept.key, known.index, known.described, file, door)


def _decords_name() -> str:
    return f"decord {sys.modules['decord'].__version__}"


def _learn(path: str, count: int) -> PacketIndex | str:
    """Returns the index of a file of which decord finds this number of frames; or why it has none."""
    index = index_or_reason(path)
    if isinstance(index, str):
        return index
    if len(index) != count:
        return "PyAV finds other frames than decord"
    if index.stream.codec not in _CODECS:
        return f"decord's frames of {index.stream.codec} depend on what was read before"
    if not _is_closed(index):
        return "decord's frames of open groups of pictures depend on what was read before"
    return _why_decords(path, index) or index


def _why_decords(path: str, index: PacketIndex) -> str | None:
    """Returns why the frames of a file are decord's: they are to be turned, or PyAV does not say it, or decord fails
    with them in some runs."""
    turned = True
    try:
        with av.open(path, metadata_errors="ignore") as container:
            if index.stream.codec == "hevc" and "matroska" in container.format.name:
                return "decord does not always decode H.265 in Matroska"
            for frame in itertools.islice(container.decode(container.streams[index.stream_index]), 1):
                turned = getattr(frame, "rotation", None) != 0
    except (av.FFmpegError, OSError) as error:
        return f"PyAV cannot read it: {error}"
    return "to be turned when it is shown" if turned else None


def _is_closed(index: PacketIndex) -> bool:
    """Whether frames that are shown before a key frame are decoded before it, and the others after it."""
    keys = np.flatnonzero(index.is_key)
    latest = np.maximum.accumulate(index.pts)
    first = np.minimum.accumulate(index.pts[::-1])[::-1]
    return bool(np.all(latest[keys[1:] - 1] < index.pts[keys[1:]]) and np.all(first[keys] == index.pts[keys]))
