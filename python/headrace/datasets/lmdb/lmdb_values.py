"""Finds the image in a value of an LMDB database, and the label beside it: Caffe's Datum, and pickled pairs."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from io import BytesIO
from typing import NamedTuple


class ImageValue(NamedTuple):
    """The image and the label of a value.

    Attributes:
        begin, size: the image's place in the value, in bytes.
        label: None if the value has none.
    """

    begin: int
    size: int
    label: object


class ValueReader:
    """Reads a value from front to back; what is skipped is not read.

    Args:
        read: (begin, size) -> bytes of the value, in bytes.
        size: of the value.
    """

    _CHUNK = 64

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self.size = size
        self.at: int = 0
        self._begin, self._held = 0, b""

    def take(self, count: int) -> bytes:
        """Returns the next bytes. Raises ValueError if they reach beyond the end."""
        if count > self.size - self.at:
            raise ValueError(f"it ends inside a field, after {self.size} bytes")
        inside = self.at - self._begin
        if inside + count > len(self._held):
            self._begin, inside = self.at, 0
            self._held = self._read(self.at, min(max(count, self._CHUNK), self.size - self.at))
        self.at += count
        return self._held[inside : inside + count]

    def skip(self, count: int) -> None:
        if count > self.size - self.at:
            raise ValueError(f"it ends inside a field, after {self.size} bytes")
        self.at += count


def datum(value: ValueReader) -> ImageValue:
    """Finds the encoded image of a Caffe `Datum`, a protobuf message. Raises ValueError if it holds none."""
    image, label, encoded = None, 0, False
    while value.at < value.size:
        tag = _read_varint(value)
        number, kind = tag >> 3, tag & 7
        if kind == 2:
            size = _read_varint(value)
            if number == 4:
                image = value.at, size
            value.skip(size)
        elif kind == 0:
            held = _read_varint(value)
            if number == 5:  # an int32, sign-extended to 64 bits
                label = held - (1 << 64) if held >> 63 else held
            elif number == 7:
                encoded = bool(held)
        elif kind in (1, 5):
            value.skip(8 if kind == 1 else 4)
        else:
            raise ValueError("it is no Datum")
    if image is None or not encoded:
        raise ValueError(
            "it is a Datum of pixels, not of an encoded image; write the database with convert_imageset --encoded"
        )
    return ImageValue(image[0], image[1], label)


def _read_varint(value: ValueReader) -> int:
    number = 0
    for shift in range(0, 70, 7):
        byte = value.take(1)[0]
        number |= (byte & 127) << shift
        if byte < 128:
            return number
    raise ValueError("it is no Datum")


# Opcodes of pickles: how many bytes of a size, or of an argument, follow.
_BYTES = {b"B": 4, b"C": 1, b"\x8e": 8, b"\x96": 8}
_TEXT = {b"X": 4, b"\x8c": 1, b"\x8d": 8}
_INTEGERS = {b"J": "<i", b"K": "<B", b"M": "<H"}
_PASSED = {b"\x80": 1, b"\x95": 8, b"\x94": 0, b"q": 1, b"r": 4, b"(": 0}  # protocol, frames, the memo, a mark
_LONG, _NONE = b"\x8a", b"N"
_PAIR = (b"\x86", b"t", b"]")


def pickled_pair(value: ValueReader) -> ImageValue:
    """Finds the image in a pickled tuple (bytes, label) without unpickling it, so nothing in it is run.

    Raises:
        ValueError: it is no pickle of protocol 3 or later, or of something else: only bytes, text, whole numbers and
            None are known.
    """
    parts: list[object] = []
    while (code := value.take(1)) not in _PAIR:
        if code in _BYTES:
            size = int.from_bytes(value.take(_BYTES[code]), "little")
            parts.append((value.at, size))
            value.skip(size)
        elif code in _TEXT:
            parts.append(value.take(int.from_bytes(value.take(_TEXT[code]), "little")).decode())
        elif code in _INTEGERS:
            parts.append(struct.unpack(_INTEGERS[code], value.take(struct.calcsize(_INTEGERS[code])))[0])
        elif code == _LONG:
            parts.append(int.from_bytes(value.take(value.take(1)[0]), "little", signed=True))
        elif code == _NONE:
            parts.append(None)
        elif code in _PASSED:
            value.skip(_PASSED[code])
        else:
            raise ValueError("it is no pickled tuple of bytes and a number or a text")
    if len(parts) != 2 or not isinstance(parts[0], tuple) or isinstance(parts[1], tuple) or code == b"]":
        raise ValueError("it is no pickled tuple of bytes and a number or a text")
    begin, size = parts[0]
    return ImageValue(begin, size, parts[1])


class _Plain(pickle.Unpickler):
    """Makes lists, numbers, bytes and texts. Whatever needs a class or a function is an error."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"it names {module}.{name}, which could run any code")


def unpickle_keys(data: bytes) -> list[bytes]:
    """Returns a pickled list of keys. Raises ValueError for anything else; nothing in it is run."""
    try:
        held = _Plain(BytesIO(data)).load()
    except Exception as error:
        raise ValueError(f"the pickled list of keys is damaged: {error}") from error
    keys = (
        [one.encode() if isinstance(one, str) else one for one in held] if isinstance(held, (list, tuple)) else [None]
    )
    if not all(isinstance(key, bytes) for key in keys):
        raise ValueError("the pickled list of keys holds something else")
    return keys
