"""Which encoded frames no other frame refers to, read from the headers of their packets.

Such a frame need not be decoded if it is not wanted. Sources: Rec. ITU-T H.264, 7.4.1 (``nal_ref_idc``); Rec. ITU-T
H.265, 7.4.2.2 (sub-layer non-reference pictures, in streams of one temporal sub-layer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

#: Returns whether other frames may refer to the frame of a packet.
IsReference: TypeAlias = "Callable[[memoryview], bool]"


def reference_finder(codec: str, extradata: bytes | None) -> IsReference | None:
    """Returns a function for the packets of a stream; None where these do not say it cheaply.

    Args:
        codec: the decoder's name in FFmpeg, such as "h264".
        extradata: of the stream: an ``avcC`` or ``hvcC`` record says how long the lengths before NAL units are;
            without one, units begin with start codes.
    """
    is_reference = {"h264": _is_h264_reference, "hevc": _is_hevc_reference}.get(codec)
    if is_reference is None:
        return None
    return lambda packet: is_reference(_split(codec, extradata, packet))


def is_entry(codec: str, extradata: bytes | None, packet: memoryview) -> bool:
    """Whether a decoder can begin with a packet; true of codecs whose packets do not say it in their units.

    In H.264, that of an IDR picture, or one with supplemental information, in which a recovery point is announced.
    """
    is_wanted = {"h264": _is_h264_entry, "hevc": _is_hevc_entry}.get(codec)
    return is_wanted is None or any(is_wanted(unit) for unit in _split(codec, extradata, packet) if len(unit))


def _split(codec: str, extradata: bytes | None, packet: memoryview) -> Iterator[memoryview]:
    """Returns the units of a packet."""
    prefix = _length_prefix(codec, extradata or b"")
    return _split_by_start_codes(packet) if prefix is None else _split_by_lengths(packet, prefix)


def _is_h264_entry(unit: memoryview) -> bool:
    return unit[0] & 31 in (5, 6)


def _is_hevc_entry(unit: memoryview) -> bool:
    return 16 <= (unit[0] >> 1) & 63 <= 23


def _length_prefix(codec: str, extradata: bytes) -> int | None:
    """Returns the number of bytes of a unit's length; None: units begin with start codes."""
    place = 4 if codec == "h264" else 21
    if len(extradata) <= place or extradata[0] != 1:
        return None
    return (extradata[place] & 3) + 1


def _split_by_lengths(packet: memoryview, prefix: int) -> Iterator[memoryview]:
    at = 0
    while at + prefix < len(packet):
        end = at + prefix + int.from_bytes(packet[at : at + prefix], "big")
        yield packet[at + prefix : end]
        at = end


def _split_by_start_codes(packet: memoryview) -> Iterator[memoryview]:
    data = bytes(packet)
    at = data.find(b"\0\0\1")
    while at >= 0:
        after = data.find(b"\0\0\1", at + 3)
        yield packet[at + 3 : after if after >= 0 else len(data)]
        at = after


def _is_h264_reference(units: Iterator[memoryview]) -> bool:
    """All slices of a picture have the same ``nal_ref_idc``, or all have not 0; two fields may differ."""
    found = [unit[0] >> 5 for unit in units if len(unit) and unit[0] & 31 in (1, 2, 5)]
    return not found or any(found)


def _is_hevc_reference(units: Iterator[memoryview]) -> bool:
    """Types 0, 2, ... 14 of TemporalId 0: nothing of the same sub-layer refers to them. Others count as referred to."""
    found = [((unit[0] >> 1) & 63, unit[1] & 7) for unit in units if len(unit) > 1 and unit[0] >> 1 & 63 < 32]
    return not found or any(kind > 14 or kind % 2 or temporal != 1 for kind, temporal in found)
