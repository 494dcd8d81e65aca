"""A JPEG file as a list of its parts, which can be joined again."""

from __future__ import annotations

from dataclasses import dataclass

SOI, EOI, SOS, DHT, DQT, DRI, COM = 0xD8, 0xD9, 0xDA, 0xC4, 0xDB, 0xDD, 0xFE
SOFS = (0xC0, 0xC1, 0xC2)


@dataclass(frozen=True)
class Part:
    """A marker with its payload, and the entropy-coded bytes after it.

    Attributes:
        marker: its second byte.
        payload: without the length; None: the marker has no length.
        codes: what follows up to the next marker that is no restart marker: the data of a scan.
        length: written instead of the true length; None: the true one.
    """

    marker: int
    payload: bytes | None = None
    codes: bytes = b""
    length: int | None = None

    def joined(self) -> bytes:
        head = bytes((0xFF, self.marker))
        if self.payload is not None:
            length = len(self.payload) + 2 if self.length is None else self.length
            head += (length % 65536).to_bytes(2, "big") + self.payload
        return head + self.codes


def parts_of(data: bytes) -> list[Part]:
    """Returns the parts of a well-formed file. Raises ValueError for others."""
    parts, at = [], 0
    while at < len(data):
        if data[at] != 0xFF or at + 1 >= len(data):
            raise ValueError(f"no marker at byte {at}")
        marker, at = data[at + 1], at + 2
        payload = None
        if marker not in (SOI, EOI):
            length = int.from_bytes(data[at : at + 2], "big")
            payload, at = data[at + 2 : at + length], at + length
        end = at
        while end < len(data) and not (data[end] == 0xFF and _ends_codes(data[end + 1 : end + 2])):
            end += 1
        parts.append(Part(marker, payload, data[at:end]))
        at = end
    return parts


def _ends_codes(second: bytes) -> bool:
    return bool(second) and second[0] not in (0x00, 0xFF) and not 0xD0 <= second[0] <= 0xD7


def joined(parts: list[Part]) -> bytes:
    return b"".join(part.joined() for part in parts)
