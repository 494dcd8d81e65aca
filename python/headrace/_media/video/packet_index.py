"""Where each encoded frame of a video stream is in its file, and when it is shown: read once, without decoding.

PyAV reads the packets. A stream whose packets are not plain (see `NotIndexed`) has no index: it is decoded by the
library that the program called.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, BinaryIO

import av
import numpy as np
import numpy.typing as npt

from headrace._media.video.reference_frames import reference_finder

if TYPE_CHECKING:
    from av.video.stream import VideoStream

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


_CONTAINERS = {"mp4", "matroska"}
_LONGEST_HEADER = 64  # bytes between the position that a container gives of a packet, and the packet


class NotIndexed(ValueError):
    """A stream has no index; the message says why."""


@dataclass(frozen=True)
class Stream:
    """What a decoder has to know before the first packet.

    Attributes:
        codec: the decoder's name in FFmpeg.
        pixel_format: its name in FFmpeg.
        colours: numbers of primaries, transfer characteristic, colour space and range, as the container has them.
    """

    codec: str
    extradata: bytes | None
    width: int
    height: int
    pixel_format: str
    colours: tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class PacketIndex:
    """The packets of a video stream in the order in which they are decoded.

    Attributes:
        stream_index: number of the stream in the file.
        time_base: seconds of one unit of `pts` and `duration`.
        pts: when each frame is shown; all differ.
        position, size: of each packet's bytes in the file.
        is_key: decoding can begin here.
        is_reference: other frames may refer to this one.
        order: packet numbers in the order in which their frames are shown: frame i of the video is that of packet
            ``order[i]``.
    """

    stream: Stream
    stream_index: int
    time_base: Fraction
    pts: Int64s
    duration: Int64s
    position: Int64s
    size: Int64s
    is_key: Bools
    is_reference: Bools
    order: Int64s

    def __len__(self) -> int:
        return len(self.pts)

    @property
    def is_regular(self) -> bool:
        """Whether all frames are shown equally long, one after the other."""
        return self._is_regular(0)

    @property
    def is_rounded(self) -> bool:
        """Whether they are but for the last digit of their times, as in containers that count milliseconds."""
        return self._is_regular(1)

    def _is_regular(self, error: int) -> bool:
        duration = self.duration[0]
        is_near = np.abs(np.diff(self.pts[self.order]) - duration) <= error
        return duration > error and bool(np.all(self.duration == duration)) and bool(np.all(is_near))

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        arrays = self.pts, self.duration, self.position, self.size, self.is_key, self.is_reference, self.order
        return sum(one.nbytes for one in arrays) + len(self.stream.extradata or b"")


def read_index(path: str, stream_index: int | None = None) -> PacketIndex:
    """Returns the index of a video stream.

    Args:
        path: of the file.
        stream_index: number of the stream; None: the one that FFmpeg calls the best.

    Raises:
        NotIndexed: it has none.
        av.FFmpegError, OSError: the file cannot be read.
    """
    with av.open(path, metadata_errors="ignore") as container:
        if not _CONTAINERS.intersection(container.format.name.split(",")):
            raise NotIndexed(f"in a container that is not MP4, MOV, Matroska or WebM ({container.format.name})")
        stream = _stream_of(container, stream_index)
        with open(path, "rb") as file:  # noqa: PTH123 - a text, as av.open gets it
            return _read_packets(container, stream, file)


def _stream_of(container: av.container.InputContainer, stream_index: int | None) -> VideoStream:
    if stream_index is None:
        found = container.streams.best("video")
    else:
        found = container.streams[stream_index] if stream_index < len(container.streams) else None
    if found is None or found.type != "video":
        raise NotIndexed("no such video stream")
    stream: VideoStream = found
    return stream


def _read_packets(container: av.container.InputContainer, stream: VideoStream, file: BinaryIO) -> PacketIndex:
    context = stream.codec_context
    is_reference = reference_finder(context.name, context.extradata)
    rows: list[tuple[int, int, int, int, bool, bool]] = []
    for packet in container.demux(stream):
        if packet.size == 0:  # the last one
            continue
        data = memoryview(packet)
        begin = _check(packet, data, file)
        assert packet.pts is not None
        refers = is_reference is None or is_reference(data)
        rows.append((packet.pts, packet.duration or 0, begin, packet.size, packet.is_keyframe, refers))
    if not rows:
        raise NotIndexed("it has no frames")
    pts, duration, position, size = (np.array([row[part] for row in rows], np.int64) for part in range(4))
    is_key, refers_to = (np.array([row[part] for row in rows], np.bool_) for part in (4, 5))
    if len(np.unique(pts)) != len(pts):
        raise NotIndexed("two frames are shown at the same time")
    if not is_key[0]:
        raise NotIndexed("it does not begin with a key frame")
    assert stream.time_base is not None
    colours = context.color_primaries, context.color_trc, context.colorspace, context.color_range
    return PacketIndex(
        Stream(context.name, context.extradata, context.width, context.height, context.pix_fmt or "", colours),
        stream.index,
        stream.time_base,
        pts,
        duration,
        position,
        size,
        is_key,
        refers_to,
        np.argsort(pts, kind="stable").astype(np.int64),
    )


def _check(packet: av.Packet[VideoStream], data: memoryview, file: BinaryIO) -> int:
    """Returns where a packet's bytes are. Raises NotIndexed for one that cannot be decoded from these alone."""
    if packet.pts is None:
        raise NotIndexed("a packet without a time")
    if packet.is_corrupt:
        raise NotIndexed("a damaged packet")
    if packet.is_discard:
        raise NotIndexed("frames that are decoded and not shown")
    if any(itertools.islice(packet.iter_sidedata(), 1)):
        raise NotIndexed("packets with side data")
    if packet.pos is not None and packet.pos >= 0:
        file.seek(packet.pos)  # in some containers, of a header before the bytes
        begin = file.read(len(data) + _LONGEST_HEADER).find(data)
        if begin >= 0:
            return int(packet.pos) + begin
    raise NotIndexed("packets that are not stored as one piece")
