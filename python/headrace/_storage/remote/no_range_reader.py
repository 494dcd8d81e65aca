"""An object whose server reads no ranges, from front to back; after a failure, from the start up to the place."""

from __future__ import annotations

import asyncio
import errno
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from headrace._storage.remote.clients.responses import UNKNOWN_SIZE, Body, Stamp, TemporaryError, check_stamp
from headrace._storage.remote.retries import Attempts
from headrace._storage.remote.urls import redact_url

T = TypeVar("T")

_MOST = 1 << 20  # bytes that are taken from a connection at a time
_MARK = bytes(1024)  # the end of a tar archive


class NoRangeReader:
    """Reads ranges one after the other; one that begins before the end of the last one starts over. Used in the loop
    of its `attempts`, by one task at a time.

    Args:
        attempts, gate: make requests again, and bound those under way.
        open_body: returns the object as it arrives, for its URL.
        stamp: of the object, if it is known.
        body: the object, if it arrives already.

    Attributes:
        url: of the object.
        size: the object's; UNKNOWN_SIZE until its end has been read, where the server does not say it.
    """

    def __init__(
        self,
        attempts: Attempts,
        gate: asyncio.Semaphore,
        open_body: Callable[[str], Awaitable[Body]],
        url: str,
        stamp: Stamp | None,
        body: Body | None,
    ) -> None:
        self._attempts, self._gate, self._open = attempts, gate, open_body
        self.url = url
        self._stamp, self._body = stamp, body
        self.size: int = UNKNOWN_SIZE if stamp is None else stamp.size
        self._tail = b""  # the last bytes that were taken
        self._cut_at = -1  # where an answer ended that may have been cut

    async def read(self, begin: int, end: int) -> bytes:
        """Returns the bytes [begin, end), or those up to the object's end. Raises OSError."""
        data = bytearray()
        while begin + len(data) < min(end, self.size):
            call = functools.partial(self._take, begin + len(data), end)
            part = await self._attempts.run(self.url, call, self._gate, small=False, timed=False)
            if not part:
                self.size = begin + len(data)
            data += part
        return bytes(data)

    async def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Returns ranges (begin, end), in ascending order, and closes the connection. Raises OSError."""
        found = []
        try:
            for begin, end in ranges:
                found.append(await self.read(begin, end))
                if len(found[-1]) < end - begin:
                    raise OSError(errno.EIO, f"{redact_url(self.url)}: the object ends at byte {self.size}")
        finally:
            self.close()
        return found

    async def _take(self, at: int, end: int) -> bytes:
        """Returns bytes from `at` on, fewer than `end - at` of them; none at the object's end."""
        try:
            if self._body is not None and self._body.position > at:
                self.close()
            if self._body is None:
                self._body = await self._in_time(self._open(self.url))
                self._tail = b""
                check_stamp(self._body.stamp, self._stamp)
            while (left := at - self._body.position) > 0:
                if not await self._next(self._body, min(left, _MOST)):
                    raise TemporaryError(f"the answer ends after {self._body.position} bytes")
            return await self._next(self._body, min(end - at, _MOST))
        except BaseException:
            self.close()
            raise

    async def _next(self, body: Body, most: int) -> bytes:
        data = await self._in_time(body.take(most))
        self._attempts.counts["bytes"] += len(data)
        if data:
            self._tail = (self._tail + data[-len(_MARK) :])[-len(_MARK) :]
        elif not body.says_its_end and self._tail != _MARK and self._cut_at != body.position:
            # Closed early, or an archive without a mark: that it ends here again says which.
            self._cut_at = body.position
            raise TemporaryError(f"the answer ends after {body.position} bytes, without the end of a tar archive")
        return data

    async def _in_time(self, work: Awaitable[T]) -> T:
        """Awaits a step. Not the whole read: to skip to a place takes as long as it takes."""
        timeout = self._attempts.timeout
        try:
            return await asyncio.wait_for(work, timeout)
        except asyncio.TimeoutError:
            raise TemporaryError(f"no more bytes in {timeout:g} s") from None

    def close(self) -> None:
        """Closes the connection. Idempotent."""
        if self._body is not None:
            self._body.close()
            self._body = None
