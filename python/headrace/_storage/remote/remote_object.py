"""Objects in other machines and their ranges, as the reader of objects knows them; ranges that one request has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._storage.remote.clients.responses import Stamp

UInt64s = npt.NDArray[np.uint64]


@dataclass(eq=False, slots=True)
class RemoteObject:
    """An object and what is known about it.

    Attributes:
        number: its number in the store.
        stamp: None: not known yet.
        cached: beginning of the paths of its entries on disk; "": none.
        lead: bytes before each range that are read as well, for `check`.
        check: takes those bytes and the range's length, and returns what is wrong with them, or "".
        tar: whether `check` asks for the header of a tar member, as the native reader does; then the mark of a range is
            that of the member's name.
        from_front: whether a range may be read by reading all before it, where the server reads no ranges.
        asked: the search for a way to read it natively, and until when its result holds, on the loop's clock.
    """

    number: int
    url: str
    options: Mapping[str, object]
    stamp: Stamp | None = None
    cached: str = ""
    lead: int = 0
    check: Callable[[bytes, int], str] | None = None
    tar: bool = False
    from_front: bool = False
    asked: tuple[asyncio.Task[None], float] | None = None


class Range(NamedTuple):
    """A range of an object; `length` ANY_LENGTH: all of it. `mark`: what it must be found to be, or 0."""

    object: int
    offset: int
    length: int
    mark: int = 0


def join_ranges(ranges: list[Range]) -> list[list[Range]]:
    """Returns the ranges in groups, one for each request: neighbours in one object. The groups are in the order of
    their first range."""
    if len(ranges) < 2:
        return [ranges] if ranges else []
    return [[ranges[i] for i in group] for group in core.joined_ranges(*columns_of(ranges)[:3])]


def columns_of(ranges: Sequence[tuple[int, int, int, int]]) -> tuple[UInt64s, UInt64s, UInt64s, UInt64s]:
    """Returns the objects, the offsets, the lengths and the marks."""
    objects, offsets, lengths, marks = np.array(ranges, np.uint64).reshape(-1, 4).T.copy()
    return objects, offsets, lengths, marks
