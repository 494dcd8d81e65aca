"""The indexes of tar shards in other machines: kept here, found beside the shard, or made in one read of it."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm  # type: ignore[import-untyped]

from headrace.remote.cache import Cache
from headrace.remote.disk_cache import DiskCache
from headrace.remote.doors.answers import Stamp
from headrace.remote.files import RemoteFiles
from headrace.remote.network import Network
from headrace.remote.urls import named, shown
from headrace.shards.tar_index import BLOCK, TarIndex, is_header, parsed, read_index, store

_PIECE = 8 << 20  # bytes of a request when a whole shard is read
_PIECES = 4  # of these requests for one shard in flight
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # the folder for temporary files may lie elsewhere
_SHARDS = 4  # shards that are read at the same time


def remote_shards(
    urls: Sequence[str], options: Mapping[str, Any] | None, cache: Cache | None, network: Network | None
) -> RemoteFiles:
    """Returns the shards; each member is read with the header in front of it, which must say the member's length."""
    return RemoteFiles(urls, options, cache, network, lead=BLOCK, check=_check)


def _check(lead: bytes, length: int) -> str:
    try:
        if is_header(lead, length):
            return ""
    except ValueError:
        pass
    return "the index does not fit the shard: no member of this length begins there; remove the index beside the shard"


def remote_indexes(files: RemoteFiles, folder: str | None) -> list[TarIndex]:
    """Returns the index of each shard.

    Args:
        folder: where indexes are kept here. None: in the cache's folder, if there is one. "": nowhere; then what lies
            beside the shards is not read either.

    Raises:
        OSError: a shard cannot be read.
        ValueError: it cannot be indexed.
    """
    fetcher = files.fetcher
    stamps = files.take_stamps()
    kept = Path(folder) if folder else fetcher.disk.folder / "indexes" if folder is None and fetcher.disk else None
    bar = tqdm(total=len(files.urls), desc="indexing", unit="shard", leave=False, disable=not sys.stderr.isatty())
    maker = _Maker(files, kept, folder != "")
    with bar:

        async def all_of_them() -> list[TarIndex]:
            async def one(url: str, stamp: Stamp) -> TarIndex:
                made = await maker.index_of(url, stamp)
                bar.update()
                return made

            tasks = [asyncio.ensure_future(one(*pair)) for pair in zip(files.urls, stamps, strict=True)]
            try:
                return list(await asyncio.gather(*tasks))
            finally:
                for task in tasks:
                    task.cancel()

        made: list[TarIndex] = fetcher.wait(all_of_them())
    return made


class _Maker:
    """Finds or makes indexes, in the fetcher's loop."""

    def __init__(self, files: RemoteFiles, kept: Path | None, beside: bool) -> None:
        self._options, self._fetcher, self._kept, self._beside = files.options, files.fetcher, kept, beside
        self._turns = asyncio.Semaphore(_SHARDS)

    async def index_of(self, url: str, stamp: Stamp) -> TarIndex:
        path = None if self._kept is None else self._kept / f"{_name(url, stamp)}.npz"
        if path is not None and path.exists():
            index = parsed(await asyncio.to_thread(path.read_bytes))
            if index is not None and int(index.stamp[0]) == stamp.size:
                return index
        index = await self._found_beside(url, stamp) if self._beside else None
        if index is None:
            async with self._turns:
                index = await self._made(url, stamp)
        if path is not None:
            with suppress(OSError):  # the index is made anew each time
                await asyncio.to_thread(store, path, index)
        return index

    async def _found_beside(self, url: str, stamp: Stamp) -> TarIndex | None:
        head, mark, query = url.partition("?")
        try:
            data = await self._fetcher.read(f"{head}.index.npz{mark}{query}", self._options, 0, None, None)
        except OSError:
            return None
        index = await asyncio.to_thread(parsed, data)
        # Its time of modification is that of a copy elsewhere. That the members begin where it says is checked with
        # each of them.
        return index if index is not None and int(index.stamp[0]) == stamp.size else None

    async def _made(self, url: str, stamp: Stamp) -> TarIndex:
        """Reads the whole shard into a file without a name, and keeps its members in the cache on disk."""
        disk = self._fetcher.disk
        if disk is not None and not disk.broken:
            try:
                return await self._made_in(disk.folder, url, stamp)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
        return await self._made_in(None, url, stamp)

    async def _made_in(self, folder: Path | None, url: str, stamp: Stamp) -> TarIndex:
        disk = self._fetcher.disk
        with tempfile.TemporaryFile(dir=folder) as file:
            await self._copy(url, stamp, file.fileno())
            index = await asyncio.to_thread(read_index, f"/proc/self/fd/{file.fileno()}", shown(url))
            if disk is not None and (beginning := disk.beginning(url, stamp)):
                await asyncio.to_thread(_fill, disk, beginning, index, file.fileno())
        return TarIndex(**{**vars(index), "stamp": np.array([stamp.size, 0], np.int64)})

    async def _copy(self, url: str, stamp: Stamp, file: int) -> None:
        turns = asyncio.Semaphore(_PIECES)

        async def piece(begin: int) -> None:
            async with turns:
                end = min(begin + _PIECE, stamp.size)
                data = await self._fetcher.read(url, self._options, begin, end, stamp)
                await asyncio.to_thread(_write, file, data, begin)

        await asyncio.gather(*(piece(begin) for begin in range(0, stamp.size, _PIECE)))


def _write(file: int, data: bytes, begin: int) -> None:
    done = 0
    while done < len(data):  # a disk that becomes full takes a part, and raises at the next call
        done += os.pwrite(file, memoryview(data)[done:], begin + done)


def _fill(disk: DiskCache, beginning: str, index: TarIndex, file: int) -> None:
    for offset, length in zip(index.offset.tolist(), index.length.tolist(), strict=True):
        if disk.broken:
            return
        disk.write(DiskCache.entry(beginning, offset, length), os.pread(file, length, offset))


def _name(url: str, stamp: Stamp) -> str:
    return hashlib.sha256(repr((named(url), *stamp)).encode()).hexdigest()[:32]
