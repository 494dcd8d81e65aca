"""Indexes of tar shards that other programs keep beside them: DALI's wds2idx and Energon's."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from headrace.base.native import core
from headrace.shards.values import INTEGERS

_BLOCK = 512
_END = 2 * _BLOCK  # bytes of the marker of the end
_PAX = 2 * _BLOCK  # bytes of PAX headers with times, which webdataset's writer makes
_TYPE = 156  # byte of a header that says what it is
_TRIED = 16  # members whose PAX headers are looked at
_MOST_DIGITS = 24  # bytes of a number, with blanks
_NUMBER = re.compile(rb"[ \t-\r]*(-?[0-9]+)[ \t-\r]*")
_ENERGON = ".nv-meta"


class Members(NamedTuple):
    """What an index says about a shard: the names, offsets and sizes of its members."""

    names: list[str]
    offsets: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint64]


def foreign_index(path: str) -> dict[str, Any] | None:
    """Returns what ``core.tar_samples`` would, from an index of another program beside a shard.

    The index must not be older than the shard, its members must follow each other up to the marker of the end, with the
    same room for headers between all, and the caller compares headers. Only numbers are read from the shard.

    Returns:
        The fields; None if there is no index, or one that does not fit.
    """
    for candidate, read in ((_of_dali(path), _dali), (_of_energon(path), _energon)):
        try:
            if os.stat(candidate).st_mtime_ns < os.stat(path).st_mtime_ns:  # noqa: PTH116 - strings
                continue
            found = read(candidate, path)
            made = None if found is None else _fields(found, path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, sqlite3.Error):
            continue
        if made is not None:
            return made
    return None


def _of_dali(path: str) -> str:
    """The name that wds2idx chooses: the shard's up to its first dot."""
    folder, name = os.path.split(path)
    return os.path.join(folder, name.split(".")[0] + ".idx")  # noqa: PTH118 - strings


def _of_energon(path: str) -> str:
    """The index of the next folder upwards that has one."""
    for folder in Path(path).parents:
        if (folder / _ENERGON).is_dir():
            return str(folder / _ENERGON / "index.sqlite")
    return ""


def _dali(index: str, path: str) -> Members | None:
    """Reads wds2idx's text: a line for each sample, with the extension, offset, size and name of each component."""
    first, _, text = Path(index).read_bytes().partition(b"\n")
    version, _, count = first.partition(b" ")
    lines = text.splitlines()
    if version != b"v1.2" or int(count) != len(lines):
        return None
    words = [line.split(b" ") for line in lines]
    if any(len(line) % 4 or not line for line in words):  # a name with blanks
        return None
    flat = [word for line in words for word in line]
    return Members(
        list(map(os.fsdecode, flat[3::4])),
        np.array(flat[1::4]).astype(np.uint64),
        np.array(flat[2::4]).astype(np.uint64),
    )


def _energon(index: str, path: str) -> Members | None:
    """Reads the shard's part of Energon's database."""
    root = Path(index).parents[1]
    shards = list(json.loads((root / _ENERGON / ".info.json").read_bytes())["shard_counts"])
    number = shards.index(os.path.relpath(path, root))
    query = (
        "SELECT s.sample_key || '.' || p.part_name, p.content_byte_offset, p.content_byte_size FROM sample_parts p "
        "JOIN samples s ON s.tar_file_id = p.tar_file_id AND s.sample_index = p.sample_index WHERE p.tar_file_id = ? "
        "ORDER BY p.content_byte_offset"
    )
    with closing(sqlite3.connect(f"file:{quote(index)}?mode=ro&immutable=1", uri=True)) as base:
        rows = base.execute(query, (number,)).fetchall()
    names, offsets, sizes = zip(*rows, strict=True)
    return Members(list(names), np.array(offsets, np.uint64), np.array(sizes, np.uint64))


def _fields(members: Members, path: str) -> dict[str, Any] | None:
    """Returns the fields of an index; None if the members cannot be all that the shard holds."""
    info = os.stat(path)  # noqa: PTH116 - a string
    ends = members.offsets + (members.sizes + np.uint64(_BLOCK - 1)) // np.uint64(_BLOCK) * np.uint64(_BLOCK)
    gaps = members.offsets - np.concatenate([[np.uint64(0)], ends[:-1]])
    gap = int(gaps[0])
    if gap not in (_BLOCK, _BLOCK + _PAX) or (gaps != gap).any() or int(ends[-1]) + _END > info.st_size:
        return None
    split = _split(members.names)
    if split is None:
        return None
    keys, sample, extension, extensions = split
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a string
        if any(os.pread(file.fileno(), _END, int(ends[-1]))):
            return None
        if gap > _BLOCK and not _all_pax(file.fileno(), members.offsets):
            return None
        whole = [number for number, name in enumerate(extensions) if name in INTEGERS]
        numbers = _numbers(file.fileno(), members, np.isin(extension, whole))
    packed = [os.fsencode(key) + b"\0" for key in keys]
    return {
        "stamp": (info.st_size, info.st_mtime_ns),
        "sample": sample,
        "extension": extension,
        "offset": members.offsets,
        "length": members.sizes,
        "number": numbers,
        "keys": b"".join(packed),
        "key_offsets": np.cumsum([0, *map(len, packed[:-1])]).astype(np.uint64),
        "extensions": list(map(os.fsencode, extensions)),
        "has_end": True,
    }


def _all_pax(file: int, offsets: npt.NDArray[np.uint64]) -> bool:
    """Whether some members, drawn at random, have PAX headers in front of their own."""
    places = {0, len(offsets) - 1, *np.random.default_rng().integers(0, len(offsets), _TRIED).tolist()}
    at = [int(offsets[place]) - _BLOCK - _PAX + _TYPE for place in places]
    return all(os.pread(file, 1, one) == b"x" for one in at)


def _split(names: Sequence[str]) -> tuple[list[str], Any, Any, list[str]] | None:
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


def _numbers(file: int, members: Members, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Returns the whole numbers that some members spell, and ``core.NO_NUMBER`` for the others."""
    numbers = np.full(len(wanted), core.NO_NUMBER, np.int64)
    for place in np.flatnonzero(wanted & (members.sizes <= _MOST_DIGITS)).tolist():
        spelt = _NUMBER.fullmatch(os.pread(file, int(members.sizes[place]), int(members.offsets[place])))
        if spelt and -(2**63) < (value := int(spelt[1])) < 2**63:
            numbers[place] = value
    return numbers
