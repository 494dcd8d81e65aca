"""The body of an answer over HTTP as it arrives, and what its head says: size, encoding, whether its end shows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from headrace._storage.remote.clients.responses import UNKNOWN_SIZE, Stamp, TemporaryError, UnreachableError

_DECODED = frozenset(("gzip", "x-gzip", "deflate"))  # by aiohttp, without another package


class HttpBody:
    """What arrives of an object whose server sends it whole. At most the connection's own buffers are held, and the
    first bytes.

    Args:
        answer: of aiohttp, whose body was not read.

    Attributes:
        stamp, position, says_its_end: see Body.
    """

    def __init__(self, answer: Any) -> None:
        self._answer, self._first = answer, b""
        self.stamp = Stamp(size_of(answer), tag_of(answer.headers))
        self.position, self.says_its_end = 0, says_its_end(answer)
        if (coding := encoding(answer)) and coding not in _DECODED:
            answer.close()
            raise OSError(f"the server encodes what it sends, with {coding}: let it send the data as it is")

    async def await_first(self, length: int) -> None:
        """Waits for the first bytes, which the first calls of `take` return."""
        first = bytearray()
        while len(first) < length and (data := await self._read(length - len(first))):
            first += data
        self._first = bytes(first)

    async def take(self, most: int) -> bytes:
        """Returns the next bytes, `most` or fewer; none at the end. Raises TemporaryError."""
        if self._first:
            data, self._first = self._first[:most], self._first[most:]
        else:
            data = await self._read(most)
        self.position += len(data)
        return data

    async def _read(self, most: int) -> bytes:
        async with Answers():
            return bytes(await self._answer.content.read(most))

    def close(self) -> None:
        """Closes the connection, if bytes are left."""
        self._answer.close()


class Answers:
    """Turns aiohttp's errors into TemporaryError."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import aiohttp

        if isinstance(error, aiohttp.InvalidURL):
            raise OSError("it is no valid URL") from None
        if isinstance(error, aiohttp.ClientResponseError) and "content-encoding" in str(error.message).lower():
            raise OSError("the server encodes what it sends, and this cannot be decoded: let it send the data as it is")
        if isinstance(error, aiohttp.ClientConnectorError):
            number, said = error.os_error.errno, error.os_error.strerror
            why = os.strerror(number) if number is not None and number > 0 else said  # of a name: below 0
            raise UnreachableError(why or type(error).__name__) from None
        if isinstance(error, (aiohttp.ClientError, asyncio.TimeoutError, ConnectionError)):
            # Not the error's own text: it may hold the URL.
            raise TemporaryError(f"the connection failed ({type(error).__name__})") from None


def tag_of(headers: Mapping[str, str]) -> str:
    """Returns what changes with an object's content, as an answer says it; "": nothing."""
    return str(headers.get("ETag") or headers.get("Last-Modified") or "")


def encoding(answer: Any) -> str:
    """Returns how the body is encoded; "": it is not."""
    coding = str(answer.headers.get("Content-Encoding", "")).strip().lower()
    return "" if coding == "identity" else coding


def size_of(answer: Any) -> int:
    """Returns the size of an object that is sent whole, or UNKNOWN_SIZE."""
    length = str(answer.headers.get("Content-Length", ""))
    return int(length) if length.isdigit() and not encoding(answer) else UNKNOWN_SIZE


def says_its_end(answer: Any) -> bool:
    """Whether a body that is cut is noticed: by its length, or by the mark at the end of its chunks."""
    headers = answer.headers
    return "Content-Length" in headers or "chunked" in str(headers.get("Transfer-Encoding", "")).lower()
