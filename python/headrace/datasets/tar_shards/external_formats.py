"""Reads what other programs write beside tar shards: the text of DALI's wds2idx, the database of Energon."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

ENERGON = ".nv-meta"  # the folder that holds the two files of Energon
INFO, DATABASE = ".info.json", "index.sqlite"
WRONG = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, sqlite3.Error)
_LEAST_STEPS, _STEPS_A_BYTE = 10_000_000, 100  # of SQLite's machine; a read of all parts takes less than 10 a byte
_WATCHED = 1_000_000  # steps between two looks at their number


class Members(NamedTuple):
    """What an index says about a shard: the names, offsets and sizes of its members."""

    names: list[str]
    offsets: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.uint64]


def dali_name(path: str) -> str:
    """The path that wds2idx chooses: the shard's, the name up to its first dot."""
    folder, mark, name = path.rpartition("/")
    return f"{folder}{mark}{name.split('.')[0]}.idx"


def read_dali(data: bytes) -> Members | None:
    """Reads wds2idx's text: a line for each sample, with the extension, offset, size and name of each component.

    Raises:
        One of WRONG: it is no such text.
    """
    first, _, text = data.partition(b"\n")
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


def energon_shards(info: bytes) -> dict[str, int]:
    """Reads Energon's list of shards: the number of each, by its path below the folder of the data set.

    Raises:
        One of WRONG: it is no such list.
    """
    return {name: number for number, name in enumerate(json.loads(info)["shard_counts"])}


def read_energon(database: str, number: int) -> Members | None:
    """Reads a shard's part of Energon's database, a file that is not changed meanwhile.

    Raises:
        One of WRONG: it is no such database.
    """
    query = (
        "SELECT s.sample_key || '.' || p.part_name, p.content_byte_offset, p.content_byte_size FROM sample_parts p "
        "JOIN samples s ON s.tar_file_id = p.tar_file_id AND s.sample_index = p.sample_index WHERE p.tar_file_id = ? "
        "ORDER BY p.content_byte_offset"
    )
    with closing(sqlite3.connect(f"file:{quote(database)}?mode=ro&immutable=1", uri=True)) as base:
        _limit_query_steps(base, os.stat(database).st_size)  # noqa: PTH116 - a string
        tables = base.execute("SELECT type FROM sqlite_master WHERE name IN ('samples', 'sample_parts')").fetchall()
        if tables != [("table",)] * 2:  # a view would be code of the file
            return None
        rows = base.execute(query, (number,)).fetchall()
    if not rows:
        return None
    names, offsets, sizes = zip(*rows, strict=True)
    return Members(list(names), np.array(offsets, np.uint64), np.array(sizes, np.uint64))


def _limit_query_steps(base: sqlite3.Connection, size: int) -> None:
    """Ends queries that take more steps than a database of that size needs."""
    base.execute("PRAGMA trusted_schema=OFF")
    left = (_LEAST_STEPS + _STEPS_A_BYTE * size) // _WATCHED

    def count_down() -> int:
        nonlocal left
        left -= 1
        return left < 0

    base.set_progress_handler(count_down, _WATCHED)
