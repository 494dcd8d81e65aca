"""Decides whether another program's index of a tar shard fits the shard, and makes the fields of ours from it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.private_files import open_own, read_own
from headrace.datasets.tar_shards.external_formats import (
    DATABASE,
    ENERGON,
    INFO,
    WRONG,
    Members,
    dali_name,
    energon_shards,
    read_dali,
    read_energon,
)
from headrace.datasets.tar_shards.member_values import INTEGERS
from headrace.datasets.tar_shards.tar_header import BLOCK, is_header_named

END = 2 * BLOCK  # bytes of the marker of the end
UNREAD = int(core.NO_NUMBER) + 1  # in place of a whole number: the member was not read
_PAX = 2 * BLOCK  # bytes of PAX headers with times, which webdataset's writer makes
_TYPE = 156  # byte of a header that says what it is
_TRIED = 16  # members whose headers are looked at
_MOST_DIGITS = 24  # bytes of a number, with blanks
_NUMBER = re.compile(rb"[ \t-\r]*(-?[0-9]+)[ \t-\r]*")


def foreign_index(path: str) -> dict[str, object] | None:
    """Returns what ``core.tar_samples`` would, from an index of another program beside a shard.

    The index must not be older than the shard, its members must follow each other up to the marker of the end, with the
    same room for headers between all, and the headers of some members must be theirs.

    Returns:
        The fields; None if there is no index, or one that does not fit.
    """
    for candidate, read in ((dali_name(path), _read_dali_index), (_find_energon(path), _read_energon_index)):
        try:
            if os.stat(candidate).st_mtime_ns < os.stat(path).st_mtime_ns:  # noqa: PTH116 - strings
                continue
            found = read(candidate, path)
            made = None if found is None else _index_fields(found, path)
        except WRONG:
            continue
        if made is not None:
            return made
    return None


def _find_energon(path: str) -> str:
    """The index of the next folder upwards that has one."""
    for folder in Path(path).parents:
        if (folder / ENERGON).is_dir():
            return str(folder / ENERGON / DATABASE)
    return ""


def _read_dali_index(index: str, path: str) -> Members | None:
    return read_dali(read_own(index, follow=True))


def _read_energon_index(index: str, path: str) -> Members | None:
    root = Path(index).parents[1]
    with open_own(index, follow=True):  # no pipe, which would be waited for
        pass
    shards = energon_shards(read_own(root / ENERGON / INFO, follow=True))
    return read_energon(index, shards[os.path.relpath(path, root)])


def _index_fields(members: Members, path: str) -> dict[str, object] | None:
    """Returns the fields of an index; None if the members cannot be all that the shard holds."""
    info = os.stat(path)  # noqa: PTH116 - a string
    found = shard_members_of(members, info.st_size)
    if found is None:
        return None
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a string

        def read(offset: int, length: int) -> bytes:
            return os.pread(file.fileno(), length, offset)

        drawn = found.draw_members(_TRIED)
        if not found.holds(drawn, [read(*one) for one in found.byte_ranges(drawn)]):
            return None
        return found.fields((info.st_size, info.st_mtime_ns), read)


@dataclass(frozen=True)
class ShardMembers:
    """Members that fill a shard, and the samples that they make.

    Attributes:
        members: names, offsets and sizes.
        gap: bytes of headers before each member.
        keys: of the samples.
        sample, extension: numbers of each member's sample and extension, uint32.
        extensions: in lower case.
    """

    members: Members
    gap: int
    keys: list[str]
    sample: npt.NDArray[np.uint32]
    extension: npt.NDArray[np.uint32]
    extensions: list[str]

    def draw_members(self, tried: int) -> list[int]:
        """Returns the numbers of the first member, the last one, and of `tried` others, drawn at random."""
        count = len(self.members.offsets)
        return sorted({0, count - 1, *np.random.default_rng().integers(0, count, tried).tolist()})

    def byte_ranges(self, drawn: Sequence[int]) -> list[tuple[int, int]]:
        """Returns the ranges (offset, length) of the marker of the end, and of the headers of these members."""
        heads = [(int(self.members.offsets[one]) - self.gap, self.gap) for one in drawn]
        return [(int(_ends_of_members(self.members)[-1]), END), *heads]

    def holds(self, drawn: Sequence[int], blocks: Sequence[bytes]) -> bool:
        """Whether the bytes in these ranges are a marker of the end, and the headers of these members.

        Raises:
            ValueError: where a header should be is something else.
        """
        end, *heads = blocks
        if len(end) != END or any(end):
            return False
        for one, block in zip(drawn, heads, strict=True):
            if len(block) != self.gap or (self.gap > BLOCK and block[_TYPE : _TYPE + 1] != b"x"):
                return False
            if not is_header_named(block[-BLOCK:], int(self.members.sizes[one]), self.members.names[one]):
                return False
        return True

    def fields(self, stamp: tuple[int, int], read: Callable[[int, int], bytes] | None) -> dict[str, object]:
        """Returns the fields of an index.

        Args:
            stamp: of the shard.
            read: returns the bytes of a range (offset, length) of the shard. None: whole numbers are left UNREAD.
        """
        whole = [number for number, name in enumerate(self.extensions) if name in INTEGERS]
        packed = [os.fsencode(key) + b"\0" for key in self.keys]
        return {
            "stamp": stamp,
            "sample": self.sample,
            "extension": self.extension,
            "offset": self.members.offsets,
            "length": self.members.sizes,
            "number": _read_numbers(self.members, np.isin(self.extension, whole), read),
            "keys": b"".join(packed),
            "key_offsets": np.cumsum([0, *map(len, packed[:-1])]).astype(np.uint64),
            "extensions": list(map(os.fsencode, self.extensions)),
            "has_end": True,
        }


def shard_members_of(members: Members, size: int) -> ShardMembers | None:
    """Returns what members make of a shard; None if they cannot be all that `size` bytes hold, or have names with
    special rules."""
    if len(members.names) == 0:
        return None
    ends = _ends_of_members(members)
    gaps = members.offsets - np.concatenate([[np.uint64(0)], ends[:-1]])
    gap = int(gaps[0])
    if gap not in (BLOCK, BLOCK + _PAX) or (gaps != gap).any() or int(ends[-1]) + END > size:
        return None
    split = _split_member_names(members.names)
    return None if split is None else ShardMembers(members, gap, *split)


def _ends_of_members(members: Members) -> npt.NDArray[np.uint64]:
    return members.offsets + (members.sizes + np.uint64(BLOCK - 1)) // np.uint64(BLOCK) * np.uint64(BLOCK)


def _split_member_names(
    names: Sequence[str],
) -> tuple[list[str], npt.NDArray[np.uint32], npt.NDArray[np.uint32], list[str]] | None:
    """Returns the keys, each member's sample and extension, and the extensions; None for names with special rules."""
    keys: list[str] = []
    known: dict[str, int] = {}
    sample, extension = np.empty(len(names), np.uint32), np.empty(len(names), np.uint32)
    taken: set[int] = set()
    for place, name in enumerate(names):
        folder, _, base = name.rpartition("/")
        stem, dot, last = base.partition(".")
        if not stem or not dot or "__" in name or ".." in name or not name.isascii():
            return None
        key = f"{folder}/{stem}" if folder or name[0] == "/" else stem
        if not keys or key != keys[-1]:
            keys.append(key)
            taken.clear()
        number = known.setdefault(last.lower(), len(known))
        if number in taken:
            return None
        taken.add(number)
        sample[place], extension[place] = len(keys) - 1, number
    return keys, sample, extension, list(known)


def _read_numbers(
    members: Members, wanted: npt.NDArray[np.bool_], read: Callable[[int, int], bytes] | None
) -> npt.NDArray[np.int64]:
    """Returns the whole numbers that some members spell, and ``core.NO_NUMBER`` for the others."""
    numbers = np.full(len(wanted), core.NO_NUMBER, np.int64)
    short = wanted & (members.sizes <= _MOST_DIGITS)
    if read is None:
        numbers[short] = UNREAD
        return numbers
    for place in np.flatnonzero(short).tolist():
        spelt = _NUMBER.fullmatch(read(int(members.offsets[place]), int(members.sizes[place])))
        if spelt and -(2**63) < (value := int(spelt[1])) < 2**63:
            numbers[place] = value
    return numbers
