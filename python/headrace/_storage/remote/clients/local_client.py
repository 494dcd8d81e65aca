"""Reads files of this machine as the other clients read objects: a stream does not ask where its shards are."""

from __future__ import annotations

import asyncio
import errno
import os
import stat as stat_bits

from headrace._storage.remote.clients.responses import LOCAL_TAG, Beginning, Body, Stamp, check_stamp


class LocalClient:
    """Reads ranges of files in threads. A file is opened for each range, so none stays open."""

    async def stamp(self, url: str) -> Stamp:
        """Returns a file's stamp."""
        return (await asyncio.to_thread(_read, url, 0, 0, None))[1]

    async def read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]:
        """Returns the bytes [begin, end) of a file, or all of it, and its stamp."""
        return await asyncio.to_thread(_read, url, begin, end, stamp)

    async def read_beginning(self, url: str, length: int) -> Beginning:
        """Returns the first bytes of a file, all of them if it has no more than `length`, and its stamp."""
        data, stamp = await asyncio.to_thread(_read, url, 0, length, None, or_less=True)
        return Beginning(data, stamp)

    async def whole(self, url: str) -> Body:
        """Is not called: files have ranges."""
        raise NotImplementedError

    async def plain_url(self, url: str) -> None:
        """Returns None: a file has no URL."""

    async def close(self) -> None:
        """Does nothing."""


def _read(path: str, begin: int, end: int | None, stamp: Stamp | None, *, or_less: bool = False) -> tuple[bytes, Stamp]:
    """Raises OSError, whose text does not repeat the path; ChangedError."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe is not waited for
    try:
        info = os.fstat(file)
        if not stat_bits.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        found = Stamp(info.st_size, f"{LOCAL_TAG}{info.st_mtime_ns}")
        check_stamp(found, stamp)
        end = info.st_size if end is None else min(end, info.st_size) if or_less else end
        parts = []
        while begin < end and (part := os.pread(file, end - begin, begin)):
            parts.append(part)
            begin += len(part)
    finally:
        os.close(file)
    if begin < end:
        raise OSError(errno.EIO, f"the file ends at byte {begin}, not {end}")
    return parts[0] if len(parts) == 1 else b"".join(parts), found
