"""Indexes of other programs beside shards in other machines: DALI's wds2idx, and Energon's."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from headrace._storage.remote.clients.responses import Stamp
from headrace._storage.remote.fetcher import Fetcher
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
from headrace.datasets.tar_shards.external_index import shard_members_of
from headrace.datasets.tar_shards.tar_index import TarIndex, index_from, is_consistent

_TRIED = 4  # members whose headers are compared, beside the first and the last one
_PIECE = 8 << 20  # bytes of a request
_PIECES = 4  # of these requests for one object in flight


class _Energon(NamedTuple):
    """A data set of Energon: its shards' numbers, by their paths in it, and a copy of its database."""

    folder: str
    shards: dict[str, int]
    database: str


class ForeignIndexes:
    """Looks for them in the fetcher's loop. A context: at its end, copies of databases are removed.

    What an index says must fill the object to its last member, and the object's marker of the end and some headers are
    compared with it. When an object was written says nothing: it is the time of its upload. Whole numbers are left
    UNREAD: to read them takes a request for most samples.

    Attributes:
        unfit: URLs of indexes that do not fit their shard.
    """

    def __init__(self, fetcher: Fetcher, options: Mapping[str, object]) -> None:
        self._fetcher, self._options = fetcher, options
        self._found: dict[str, asyncio.Future[_Energon | None]] = {}  # by the folder of a shard
        self._ends = AsyncExitStack()
        self.unfit: list[str] = []

    async def __aenter__(self) -> ForeignIndexes:
        return self

    async def __aexit__(self, *_: object) -> None:
        for one in self._found.values():
            one.cancel()
        await self._ends.aclose()

    async def index_of(self, url: str, stamp: Stamp) -> TarIndex | None:
        """Returns the index of a shard; None if there is none that fits."""
        head, mark, query = url.partition("?")
        of = f"{dali_name(head)}{mark}{query}"
        with suppress(*WRONG):
            if (made := await self._index_if_fitting(url, stamp, of, await self._read_dali(of))) is not None:
                return made
        with suppress(*WRONG):
            if (energon := await self._energon_of(head, mark + query)) is not None:
                number = energon.shards[head[len(energon.folder) + 1 :]]
                members = await asyncio.to_thread(_read_members_or_none, energon.database, number)
                return await self._index_if_fitting(url, stamp, f"{energon.folder}/{ENERGON}/{DATABASE}", members)
        return None

    async def _read_dali(self, url: str) -> Members | None | str:
        """Returns what an index says; "" if there is none, None if it is damaged."""
        try:
            data = await self._fetcher.read(url, self._options, 0, None, None)
        except OSError:
            return ""
        try:
            return await asyncio.to_thread(read_dali, data)
        except WRONG:
            return None

    async def _index_if_fitting(
        self, url: str, stamp: Stamp, of: str, members: Members | None | str
    ) -> TarIndex | None:
        """Returns the index of a shard from its members, if these are what the object holds."""
        if isinstance(members, str):
            return None
        made = None
        with suppress(*WRONG):
            made = None if members is None else await self._compare_headers(url, stamp, members)
        if made is None:
            self.unfit.append(of)
        return made

    async def _compare_headers(self, url: str, stamp: Stamp, members: Members) -> TarIndex | None:
        found = await asyncio.to_thread(shard_members_of, members, stamp.size)
        if found is None:
            return None
        drawn = found.draw_members(_TRIED)
        ranges = found.byte_ranges(drawn)
        reads = [self._fetcher.read(url, self._options, at, at + length, stamp) for at, length in ranges]
        if not found.holds(drawn, await asyncio.gather(*reads)):
            return None
        index = index_from(await asyncio.to_thread(found.fields, (stamp.size, 0), None))
        return index if is_consistent(index) else None

    async def _energon_of(self, head: str, query: str) -> _Energon | None:
        """Returns the data set of the next folder upwards that is one."""
        folder = head.rpartition("/")[0]
        if folder not in self._found:
            self._found[folder] = asyncio.ensure_future(self._look_for_energon(folder, query))
        return await asyncio.shield(self._found[folder])

    async def _look_for_energon(self, folder: str, query: str) -> _Energon | None:
        while not folder.endswith("/"):  # what is left is the protocol
            with suppress(*WRONG):
                info = await self._fetcher.read(f"{folder}/{ENERGON}/{INFO}{query}", self._options, 0, None, None)
                shards = energon_shards(info)
                return _Energon(folder, shards, await self._copy_database(f"{folder}/{ENERGON}/{DATABASE}{query}"))
            folder = folder.rpartition("/")[0]
        return None

    async def _copy_database(self, url: str) -> str:
        """Returns the path of a copy of an object."""
        stamp = await self._fetcher.stamp(url, self._options)
        root = self._ends.enter_context(tempfile.TemporaryDirectory(prefix="headrace-"))
        path = Path(root, DATABASE)
        with path.open("wb") as file:
            await copy_object(self._fetcher, url, self._options, stamp, file.fileno())
        return str(path)


def _read_members_or_none(database: str, number: int) -> Members | None:
    try:
        return read_energon(database, number)
    except WRONG:
        return None


async def copy_object(fetcher: Fetcher, url: str, options: Mapping[str, object], stamp: Stamp, file: int) -> None:
    """Copies an object into a file, by several requests at the same time. Raises OSError."""
    turns = asyncio.Semaphore(_PIECES)

    async def piece(begin: int) -> None:
        async with turns:
            data = await fetcher.read(url, options, begin, min(begin + _PIECE, stamp.size), stamp)
            await asyncio.to_thread(_write_at, file, data, begin)

    await asyncio.gather(*(piece(begin) for begin in range(0, stamp.size, _PIECE)))


def _write_at(file: int, data: bytes, begin: int) -> None:
    done = 0
    while done < len(data):  # a disk that becomes full takes a part, and raises at the next call
        done += os.pwrite(file, memoryview(data)[done:], begin + done)
