"""Which bytes of a file in another machine are needed: its tables, and the packets of wanted frames.

Source of the boxes: ISO/IEC 14496-12, 4.2.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headrace._media.video.frame_decoder import NotDecoded
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.reference_frames import is_entry, reference_finder
from headrace._storage.parts.sample_bytes import SampleBytes, Span

_HEAD = struct.Struct(">I4s")
_LONG = struct.Struct(">Q")
_FIRST = (b"ftyp", b"wide", b"free", b"skip", b"moov", b"mdat")
_MOST_BOXES = 64
_MOST_TABLES = 64 << 20  # bytes


def find_packets(file: SampleBytes) -> list[Span] | None:
    """Returns the spans of an MP4 or MOV file that hold only packets, whose places its one table says.

    None for all else: in other containers, and in fragmented files, headers are between packets. The table is fetched.

    Raises:
        OSError: the file cannot be read.
    """
    spans: list[Span] = []
    tables: list[Span] = []
    at = 0
    for _ in range(_MOST_BOXES):
        head = file.read(at, _HEAD.size + _LONG.size)
        if len(head) < _HEAD.size:
            break
        size, kind = _HEAD.unpack_from(head)
        own = _HEAD.size
        if size == 1 and len(head) == _HEAD.size + _LONG.size:
            (size,), own = _LONG.unpack_from(head, own), len(head)
        size = file.size - at if size == 0 else size
        if size < own or at + size > file.size or kind == b"moof" or (at == 0 and kind not in _FIRST):
            return None
        if kind == b"mdat":
            spans.append((at + own, size - own))
        elif kind == b"moov":
            tables.append((at, size))
        at += size
    if at != file.size or len(tables) != 1 or tables[0][1] > _MOST_TABLES or not spans:
        return None
    file.fetch(tables)
    return spans


class NeededPackets(NamedTuple):
    """Packets of a file.

    Attributes:
        parts: the first one, and one past the last, of runs of packets.
        spans: of the file, that hold them.
    """

    parts: list[tuple[int, int]]
    spans: list[Span]

    @property
    def nbytes(self) -> int:
        """Bytes of the spans."""
        return sum(count for _, count in self.spans)


def find_needed(file: SampleBytes, index: PacketIndex, frames: Sequence[int]) -> NeededPackets:
    """Returns what wanted frames need, from each key frame on.

    Of a file that a cache keeps, groups are needed whole: the next clip of it needs another part of them.

    Args:
        frames: their numbers, one or more.
    """
    packets = np.unique(index.order[np.asarray(frames, np.int64)])
    keys = index.keys_of(packets)
    all_keys = np.append(np.flatnonzero(index.is_key), len(index))
    ends = index.position + index.size
    needed = NeededPackets([], [])
    for key in np.unique(keys).tolist():
        after = int(packets[keys == key].max()) + 1
        if file.keeps_all:
            after = max(after, int(all_keys[np.searchsorted(all_keys, key, side="right")]))
        needed.parts.append((key, after))
        needed.spans.extend(_join(index.position[key:after].tolist(), ends[key:after].tolist()))
    return needed


def fetch_packets(file: SampleBytes, index: PacketIndex, needed: NeededPackets) -> None:
    """Fetches packets, and learns which of them are not needed after all.

    Raises:
        NotDecoded: a packet is not what the tables of the file say: no decoder can begin with a key frame.
        OSError: the file cannot be read.
    """
    file.fetch(needed.spans)
    for first, after in needed.parts:
        _learn_references(file, index, first, after)


_GAP = 64 << 10  # bytes between two packets that are fetched with them, instead of by another request


def _join(begins: list[int], ends: list[int]) -> list[Span]:
    """Returns few spans that hold packets, in the order of the file."""
    spans: list[list[int]] = []
    for begin, end in sorted(zip(begins, ends, strict=True)):
        if spans and begin <= spans[-1][1] + _GAP:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([begin, end])
    return [(begin, end - begin) for begin, end in spans]


def _learn_references(file: SampleBytes, index: PacketIndex, first: int, after: int) -> None:
    """Reads which frames of some packets others may refer to. Any thread that does finds the same."""
    if index.is_read is None or index.is_read[first:after].all():
        return
    codec, extradata = index.stream.codec, index.stream.extradata
    is_reference = reference_finder(codec, extradata)
    for packet in range(first, after):
        if index.is_read[packet]:
            continue
        data = memoryview(file.read(int(index.position[packet]), int(index.size[packet])))
        if index.is_key[packet] and not is_entry(codec, extradata, data):
            raise NotDecoded("a packet that the file's tables call a key frame is none")
        index.is_reference[packet] = is_reference is None or is_reference(data)
        index.is_read[packet] = True
