"""Decodes chosen frames of a video: from the key frame before them on, without the frames that nothing refers to.

Decoders (FFmpeg's, by PyAV) stay open in the thread that made them, for other files with the same parameters.
"""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

import av
import numpy as np
from av.video.codeccontext import VideoCodecContext

from headrace._base.lifetimes.finalizers import Ending
from headrace._media.video.packet_index import Int64s, PacketIndex, Stream

#: Returns the bytes of the file from a position on: position, number of bytes.
Read: TypeAlias = "Callable[[int, int], bytes]"

OPEN_DECODERS = 4
_LONGEST_READ = 1 << 22


class NotDecoded(Exception):
    """Frames have to be decoded by the library that the program called: it says what is wrong with them."""


class FrameDecoder(Ending):
    """The frames of one video. For one thread; another thread needs another decoder.

    When it is dropped, its decoder is kept for other files.

    Args:
        index: of the video's packets.
        read: returns bytes of its file.
        once: whether frames are wanted once, and reading more packets costs much: after the last wanted packet of a
            group the decoder is emptied, instead of getting others until it returns the frame.

    Attributes:
        sent: number of packets that the decoder has got.
    """

    def __init__(self, index: PacketIndex, read: Read, *, once: bool = False) -> None:
        self._index, self._read, self._once = index, read, once
        self._context: VideoCodecContext | None = None
        self._next = 0  # packet that the decoder has not got
        self._from = 0  # pts of the key frame that it began with: frames before it need others that it never got
        self._waiting: set[int] = set()  # pts of frames that it has got and not returned
        self._ready: dict[int, av.VideoFrame] = {}  # frames that it returned with others, by pts
        self._bytes, self._begin = b"", 0
        self.sent = 0

    def decode(self, frames: Sequence[int]) -> list[av.VideoFrame]:
        """Returns the frames with these numbers, each 0 or more and less than the length of the index, in this order.

        Raises:
            NotDecoded: a packet is damaged, or the decoder returns no frame for one.
            OSError: the file cannot be read.
        """
        index = self._index
        packets = index.order[np.asarray(frames, np.int64)]
        made: dict[int, av.VideoFrame] = {}
        wanted = np.unique(packets)
        keys = index.keys_of(wanted)
        try:
            for key in np.unique(keys).tolist():
                self._decode_from(key, wanted[keys == key], made)
        except av.FFmpegError as error:
            self._end()
            raise NotDecoded(str(error)) from error
        return [made[int(index.pts[packet])] for packet in packets]

    def _decode_from(self, key: int, wanted: Int64s, made: dict[int, av.VideoFrame]) -> None:
        """Decodes frames that need a key frame."""
        index = self._index
        missing = {int(index.pts[packet]) for packet in wanted}
        for pts in missing & self._ready.keys():
            made[pts] = self._ready.pop(pts)
        missing -= made.keys()
        to_send = [packet for packet in wanted.tolist() if int(index.pts[packet]) in missing - self._waiting]
        if missing and (self._context is None or key > self._next or (to_send and min(to_send) < self._next)):
            self._begin_at(key)
            missing = {int(index.pts[packet]) for packet in wanted}
        last = int(wanted.max())
        end = last + 1 if self._once else len(index)
        while missing and self._next < end:  # after the last one, the decoder may still wait for others
            packet, pts = self._next, int(index.pts[self._next])
            self._next += 1
            if pts >= self._from and (index.is_reference[packet] or pts in missing):
                self._waiting.add(pts)
                self.sent += 1
                together = packet if self._once else max(packet, last)  # what is costly to read is here already
                self._take(self._make_packet(packet, together), missing, made)
        if missing:
            self._take(None, missing, made)
            self._next = len(index)
        if missing:
            raise NotDecoded("the decoder returns no frame for a packet")

    def _begin_at(self, key: int) -> None:
        if self._context is None:
            self._context = _kept.take(self._index.stream)
            self.at_end = functools.partial(_kept.decoders.append, (self._index.stream, self._context))
        else:
            self._context.flush_buffers()
        self._waiting.clear()
        self._ready.clear()
        self._next, self._from = key, int(self._index.pts[key])

    def _take(
        self, packet: av.Packet[av.VideoStream] | None, missing: set[int], made: dict[int, av.VideoFrame]
    ) -> None:
        assert self._context is not None
        for frame in self._context.decode(packet):
            if frame.is_corrupt or frame.pts is None:
                raise NotDecoded("a damaged frame")
            self._waiting.discard(frame.pts)
            if frame.pts in missing:
                missing.discard(frame.pts)
                made[frame.pts] = frame
            elif not missing:
                self._ready[frame.pts] = frame

    def _make_packet(self, packet: int, last: int) -> av.Packet[av.VideoStream]:
        """Returns a packet with its bytes; those of the packets up to the last are read with it."""
        begin, size = int(self._index.position[packet]), int(self._index.size[packet])
        if not self._begin <= begin <= begin + size <= self._begin + len(self._bytes):
            ends = self._index.position[packet : last + 1] + self._index.size[packet : last + 1]
            near = ends[(ends > begin) & (ends <= begin + _LONGEST_READ)]
            self._bytes, self._begin = self._read(begin, int(near.max(initial=begin + size)) - begin), begin
            if len(self._bytes) < size:
                raise NotDecoded("the file is shorter than it was")
        made: av.Packet[av.VideoStream] = av.Packet(self._bytes[begin - self._begin : begin - self._begin + size])
        made.pts = made.dts = int(self._index.pts[packet])
        return made

    def _end(self) -> None:
        """Closes the decoder: it is in an unknown state."""
        self._context, self.at_end = None, bool


class _KeptDecoders(threading.local):
    """Open decoders of this thread that no video uses, the newest last."""

    def __init__(self) -> None:
        self.decoders: collections.deque[tuple[Stream, VideoCodecContext]] = collections.deque(maxlen=OPEN_DECODERS)

    def take(self, stream: Stream) -> VideoCodecContext:
        """Returns a decoder for a stream: one that is open, if one has the same parameters."""
        for place, (known, context) in enumerate(self.decoders):
            if known == stream:
                del self.decoders[place]
                context.flush_buffers()
                return context
        return _open_decoder(stream)


_kept = _KeptDecoders()


def _open_decoder(stream: Stream) -> VideoCodecContext:
    context = av.CodecContext.create(stream.codec, "r")
    assert isinstance(context, VideoCodecContext)
    context.extradata = stream.extradata
    context.width, context.height = stream.width, stream.height
    context.pix_fmt = stream.pixel_format
    context.color_primaries, context.color_trc, context.colorspace, context.color_range = stream.colours
    context.thread_count = 1
    context.options = {"err_detect": "explode"}  # damaged frames are an error instead of a guess
    return context
