"""Where each encoded frame of a video stream is in its file, and when it is shown: read once, without decoding.

PyAV reads the packets. A stream whose packets are not plain (see `NotIndexed`) has no index: it is decoded by the
library that the program called.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import av
import numpy as np
import numpy.typing as npt

from headrace._media.video.reference_frames import IsReference, reference_finder
from headrace._storage.parts.sample_bytes import ByteFile, FileBytes, SampleBytes, Span

if TYPE_CHECKING:
    from av.video.stream import VideoStream

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
LookAt = Callable[["av.Packet[VideoStream]"], tuple[int, bool]]


_CONTAINERS = {"mp4", "matroska"}
_WITHOUT_PACKETS = {"fflags": "noparse+nofillin"}  # FFmpeg's parsers would read flags from packets of zeros
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
        is_read: which packets have been read, so that `is_reference` says what they say, and true of all others; None:
            all.
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
    is_read: Bools | None = None

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
        more = 0 if self.is_read is None else self.is_read.nbytes
        return sum(one.nbytes for one in arrays) + more + len(self.stream.extradata or b"")

    def keys_of(self, packets: Int64s) -> Int64s:
        """Returns the packet of the last key frame that is not shown after each of some frames."""
        keys = np.flatnonzero(self.is_key)
        keys = keys[np.argsort(self.pts[keys], kind="stable")]
        before = np.searchsorted(self.pts[keys], self.pts[packets], side="right") - 1
        found: Int64s = keys[np.maximum(before, 0)]
        return found


def read_index(file: str | SampleBytes, stream_index: int | None = None, *, blank: Sequence[Span] = ()) -> PacketIndex:
    """Returns the index of a video stream.

    Args:
        file: its path, or its bytes.
        stream_index: number of the stream; None: the one that FFmpeg calls the best.
        blank: spans of the file, in their order, that hold nothing but packets. They are not read: the container's
            tables say where packets are, and `PacketIndex.is_read` that none has been read.

    Raises:
        NotIndexed: it has none.
        av.FFmpegError, OSError: the file cannot be read.
    """
    data = FileBytes(file) if isinstance(file, str) else file
    with _open_container(data) as container:
        if not _CONTAINERS.intersection(container.format.name.split(",")):
            raise NotIndexed(f"in a container that is not MP4, MOV, Matroska or WebM ({container.format.name})")
        stream = _stream_of(container, stream_index)
        if not blank:
            context = stream.codec_context
            finder = reference_finder(context.name, context.extradata)
            return _read_packets(container, stream, lambda packet: _look_at(packet, data, finder), are_read=True)
        with _open_container(data, blank, _WITHOUT_PACKETS) as tables:
            return _read_packets(tables, stream, _look_at_place, are_read=False)


@contextlib.contextmanager
def _open_container(
    data: SampleBytes, blank: Sequence[Span] = (), options: dict[str, str] | None = None
) -> Iterator[av.container.InputContainer]:
    source: Any = data.path or ByteFile(data, blank)
    try:
        with av.open(source, metadata_errors="ignore", options=options or {}) as container:
            yield container
    finally:
        if isinstance(source, ByteFile):
            source.check()


def _stream_of(container: av.container.InputContainer, stream_index: int | None) -> VideoStream:
    if stream_index is None:
        found = container.streams.best("video")
    else:
        found = container.streams[stream_index] if stream_index < len(container.streams) else None
    if found is None or found.type != "video":
        raise NotIndexed("no such video stream")
    stream: VideoStream = found
    return stream


def _read_packets(
    container: av.container.InputContainer, stream: VideoStream, look_at: LookAt, *, are_read: bool
) -> PacketIndex:
    """Returns the index of a stream.

    Args:
        container: whose packets are read; it may be another opening of the file than that of the stream.
    """
    rows: list[tuple[int, int, int, int, bool, bool]] = []
    for packet in container.demux(container.streams[stream.index]):
        if packet.size == 0:  # the last one
            continue
        _check(packet)
        assert packet.pts is not None
        begin, refers = look_at(packet)
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
    context = stream.codec_context
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
        None if are_read else np.zeros(len(rows), np.bool_),
    )


def _check(packet: av.Packet[VideoStream]) -> None:
    """Raises NotIndexed for a packet that cannot be decoded from its bytes alone."""
    if packet.pts is None:
        raise NotIndexed("a packet without a time")
    if packet.is_corrupt:
        raise NotIndexed("a damaged packet")
    if packet.is_discard:
        raise NotIndexed("frames that are decoded and not shown")
    if any(itertools.islice(packet.iter_sidedata(), 1)):
        raise NotIndexed("packets with side data")


def _look_at(packet: av.Packet[VideoStream], file: SampleBytes, is_reference: IsReference | None) -> tuple[int, bool]:
    """Returns where a packet's bytes are in the file, and whether others may refer to its frame."""
    data = memoryview(packet)
    if packet.pos is not None and packet.pos >= 0:  # in some containers, of a header before the bytes
        begin = file.read(packet.pos, len(data) + _LONGEST_HEADER).find(data)
        if begin >= 0:
            return int(packet.pos) + begin, is_reference is None or is_reference(data)
    raise NotIndexed("packets that are not stored as one piece")


def _look_at_place(packet: av.Packet[VideoStream]) -> tuple[int, bool]:
    """Returns the same of a packet whose bytes have not been read."""
    if packet.pos is None or packet.pos < 0:
        raise NotIndexed("packets without a place in the file")
    return int(packet.pos), True
