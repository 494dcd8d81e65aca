"""The header of a tar member: whether a block is one, and of which member; members of samples that are compared with it
when they are read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.types import State

BLOCK = 512

UInt64s = npt.NDArray[np.uint64]
#: A field, as the native core takes it: extensions, the choice among them, offsets, lengths, numbers.
_Said = tuple[list[bytes], npt.NDArray[np.uint8], UInt64s, UInt64s, npt.NDArray[np.int64] | None]


def is_header_of(file: int, offset: int, length: int, name: str) -> bool:
    """Whether the block before the bytes is this member's tar header, with its name where this header holds it. The
    case of letters is not compared."""
    return is_header_named(os.pread(file, BLOCK, offset - BLOCK), length, name)


def is_header_named(block: bytes, length: int, name: str) -> bool:
    """As `is_header_of`, of the bytes of a header. Raises ValueError where it holds no numbers."""
    if not is_header(block, length):
        return False
    whole = os.fsencode(name)
    own = block[:100].split(b"\0")[0]
    # Longer names, and in some formats those that are not ASCII, are in headers of their own.
    return len(whole) >= 100 or not whole.isascii() or whole.lower().endswith(own.lower())


def is_header(block: bytes, length: int) -> bool:
    """Whether a block is the header of a member of `length` bytes. Raises ValueError where it holds no numbers."""
    if len(block) != BLOCK or _octal(block[148:156]) != sum(block[:148]) + sum(block[156:]) + 8 * 32:
        return False
    return bool(block[124] & 0x80) or _octal(block[124:136]) == length


def _octal(field: bytes) -> int:
    return int(field.split(b"\0")[0].strip() or b"0", 8)


class ZeroTerminatedTexts(Protocol):
    """Texts that are each zero-terminated, one after the other."""

    @property
    def packed(self) -> bytes | npt.NDArray[np.uint8]: ...
    @property
    def offsets(self) -> UInt64s: ...


class MemberRanges(Protocol):
    """A member of each sample, as `all_samples.JoinedField` describes it."""

    @property
    def extensions(self) -> tuple[str, ...]: ...
    @property
    def choice(self) -> npt.NDArray[np.uint8]: ...
    @property
    def offset(self) -> UInt64s: ...
    @property
    def length(self) -> UInt64s: ...
    @property
    def number(self) -> npt.NDArray[np.int64] | None: ...


class MemberCheck:
    """The names of members, where they are stored, and whole numbers that they spell. Can be pickled.

    The first read of a sample compares its members with the shard: the name, the size, and the number. Those of a shard
    in another machine are compared each time that they are fetched, except the numbers.

    Args:
        keys: of the samples.
        first: the members that are read.
        others: those whose numbers are taken from the index.
    """

    def __init__(self, keys: ZeroTerminatedTexts, first: MemberRanges, others: Sequence[MemberRanges] = ()) -> None:
        self._keys, self._key_offsets = keys.packed, keys.offsets
        self._fields = [_convert_field(first, None), *(_convert_field(one, one.number) for one in others)]
        self._native: core.TarCheck | None = None

    def native(self) -> core.TarCheck:
        """Returns the check for the native core."""
        if self._native is None:
            self._native = core.TarCheck(self._keys, self._key_offsets, self._fields)
        return self._native

    def marks(self) -> UInt64s:
        """Returns the mark of each name; 0 for one that a member's own header may not hold."""
        extensions, choice = self._fields[0][:2]
        return core.name_marks(self._keys, self._key_offsets, extensions, choice)

    def __getstate__(self) -> State:
        return {**vars(self), "_native": None}


def _convert_field(field: MemberRanges, numbers: npt.NDArray[np.int64] | None) -> _Said:
    given = numbers if numbers is None else np.ascontiguousarray(numbers, np.int64)
    return (
        [os.fsencode(name) for name in field.extensions],
        np.ascontiguousarray(field.choice, np.uint8),
        np.ascontiguousarray(field.offset, np.uint64),
        np.ascontiguousarray(field.length, np.uint64),
        given,
    )
