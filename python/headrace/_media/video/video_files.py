"""The index that is learned of a video where torchcodec finds the same frames, and torchcodec's description of it."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import av
import numpy as np

from headrace._media.library_decoders import open_decoder
from headrace._media.video.frame_times import seconds_of
from headrace._media.video.known_videos import KnownVideo
from headrace._media.video.needed_bytes import find_packets
from headrace._media.video.packet_index import NotIndexed, PacketIndex, read_index
from headrace._storage.parts.sample_bytes import ByteFile, HeldBytes, SampleBytes, Span


def index_or_reason(
    file: str | SampleBytes, stream_index: int | None = None, blank: tuple[Span, ...] = ()
) -> PacketIndex | str:
    """Returns what `read_index` does; or why it raises. Raises OSError if a file in another machine cannot be read."""
    try:
        return read_index(file, stream_index, blank=blank)
    except NotIndexed as reason:
        return str(reason)
    except av.FFmpegError as error:
        return f"PyAV cannot read it: {error}"
    except OSError as error:
        if isinstance(file, SampleBytes) and file.is_far:
            raise
        return f"PyAV cannot read it: {error}"


def learn_index(file: str | SampleBytes, stream_index: int, metadata: Any) -> PacketIndex | str:
    """Returns the index of a stream that torchcodec has scanned; or why it has none.

    Args:
        file: its path, or its bytes.
        metadata: torchcodec's, of this stream.
    """
    return checked_index(index_or_reason(file, stream_index), metadata)


def checked_index(index: PacketIndex | str, metadata: Any) -> PacketIndex | str:
    """Returns the index of a stream, if torchcodec describes the same frames; or why it has none."""
    if isinstance(index, str):
        return index
    if not _agrees(index, metadata):
        return "PyAV finds other frames than torchcodec"
    return index if index.is_rounded else "of a variable frame rate"  # FFmpeg's versions give other durations


def _agrees(index: PacketIndex, metadata: Any) -> bool:
    """Whether torchcodec found the same frames, which are shown as they are stored."""
    size = metadata.height, metadata.width
    said = metadata.begin_stream_seconds_from_content, metadata.end_stream_seconds_from_content
    return (
        metadata.num_frames == len(index)
        and said == _begin_and_end_of(index)
        and size == (index.stream.height, index.stream.width)
        and not metadata.rotation
    )


def _begin_and_end_of(index: PacketIndex) -> tuple[float, float]:
    """Returns when the first frame is shown and the last one ends, in seconds."""
    ends = index.pts + index.duration
    begin, end = seconds_of(index, np.array([index.pts.min(), ends.max()])).tolist()
    return begin, end


def open_exact(file: SampleBytes, index: PacketIndex | None = None, device: str = "cpu") -> tuple[Any, ByteFile | None]:
    """Returns a decoder of torchcodec's that seeks exactly, as a program that opens one for each sample has, and the
    file object that it reads, if there is one.

    Args:
        index: of a file that it need not scan; None: it does.
        device: that decodes.

    Raises:
        ValueError, RuntimeError: torchcodec's.
        OSError: the file cannot be read.
    """
    path = file.path
    source = ByteFile(file) if path is None else None
    options = {"dimension_order": "NHWC", "num_ffmpeg_threads": 1, "device": device}
    if index is not None:
        options |= {"custom_frame_mappings": _mappings_of(index), "stream_index": index.stream_index}
    try:
        return open_decoder("VideoDecoder", source or path or "", **options), source
    finally:
        if source is not None:
            source.check()


def _mappings_of(index: PacketIndex) -> str:
    """Returns the frames of a stream as torchcodec takes them, in JSON."""
    columns = (one[index.order].tolist() for one in (index.pts, index.duration, index.is_key))
    frames = [
        {"pts": pts, "duration": length, "key_frame": int(key)} for pts, length, key in zip(*columns, strict=True)
    ]
    return json.dumps({"frames": frames})


def learn_from_tables(file: SampleBytes) -> KnownVideo | None:
    """Returns what the tables of a file say, without its packets; None: they do not say it, or it has no index.

    torchcodec opens the file with the frames of the index, which saves it the scan. What the scan would have found
    follows from them.

    Raises:
        ValueError, RuntimeError: torchcodec's.
        OSError: the file cannot be read.
    """
    blank = find_packets(file)
    if blank is None:
        return None
    index = index_or_reason(file, None, tuple(blank))
    if isinstance(index, str):
        return None
    decoder, _ = open_exact(file, index)
    described = _described_as_scanned(decoder.metadata, index)
    checked = checked_index(index, described)
    return None if isinstance(checked, str) else KnownVideo(checked, described)


def _described_as_scanned(metadata: Any, index: PacketIndex) -> Any:
    """Returns torchcodec's description of a stream that it has not scanned, with what a scan finds."""
    begin, end = _begin_and_end_of(index)
    found: dict[str, Any] = {"begin_stream_seconds_from_content": begin, "end_stream_seconds_from_content": end}
    found |= {"num_frames_from_content": len(index), "average_fps": len(index) / (end - begin) if end > begin else None}
    known = {field.name for field in dataclasses.fields(metadata)}
    return dataclasses.replace(metadata, **{name: value for name, value in found.items() if name in known})


def learn_by_scan(file: SampleBytes) -> KnownVideo:
    """Returns what torchcodec and PyAV find in all bytes of a file.

    Raises:
        ValueError, RuntimeError: torchcodec's.
        OSError: the file cannot be read.
    """
    decoder, source = open_exact(file)
    described = copy.copy(decoder.metadata)
    known = KnownVideo(learn_index(file.path or file, decoder.stream_index, described), described)
    if source is not None:
        source.check()
    return known


def read_whole(file: SampleBytes) -> SampleBytes:
    """Returns all bytes of a file in another machine, in memory; another file as it is. Raises OSError."""
    if not file.is_far:
        return file
    file.fetch([(0, file.size)])
    return HeldBytes(file.read(0, file.size), file.key)
