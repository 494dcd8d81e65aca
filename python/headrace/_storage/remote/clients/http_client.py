"""Reads objects over HTTP, in the session of fsspec's file system: every answer names the object that it belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from headrace._storage.remote.clients.responses import (
    ChangedError,
    PlainUrl,
    Stamp,
    TemporaryError,
    check_stamp,
    error_of,
)


class HttpClient:
    """Reads through the session, with the headers and the credentials, of fsspec's HTTP file system.

    Args:
        fs: the file system.
        plain: whether nothing was said about how it reads.
    """

    def __init__(self, fs: Any, *, plain: bool = False) -> None:
        self._fs, self._plain = fs, plain

    async def stamp(self, url: str) -> Stamp:
        """Returns an object's stamp."""
        session = await self._fs.set_session()
        async with (
            _Answers(),
            session.head(self._fs.encode_url(url), **self._request_options({}), allow_redirects=True) as one,
        ):
            if one.status >= 400:
                raise error_of(one.status, one.headers.get("Retry-After"), one.reason or "")
            if "Content-Length" not in one.headers:
                raise OSError("the server does not say how large the object is")
            return Stamp(int(one.headers["Content-Length"]), _tag_of_content(one.headers))

    async def read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]:
        """Returns the bytes [begin, end) of an object, or all of it, and its stamp."""
        headers = {} if end is None else {"Range": f"bytes={begin}-{end - 1}"}
        if stamp is not None and stamp.tag.startswith('"'):  # a weak ETag never matches
            headers["If-Match"] = stamp.tag
        session = await self._fs.set_session()
        async with _Answers(), session.get(self._fs.encode_url(url), **self._request_options(headers)) as one:
            if one.status >= 300:
                raise error_of(one.status, one.headers.get("Retry-After"), one.reason or "")
            found = _stamp_of_response(one, begin, end)
            check_stamp(found, stamp)
            data = await one.read()
        if len(data) != (found.size if end is None else end - begin):
            raise TemporaryError(f"the answer ends after {len(data)} bytes")
        return data, found

    async def first(self, url: str, length: int) -> tuple[bytes, Stamp]:
        """Returns the first bytes of an object, all of them if it has no more than `length`, and its stamp."""
        options = self._request_options({"Range": f"bytes=0-{length - 1}"})
        session = await self._fs.set_session()
        async with _Answers(), session.get(self._fs.encode_url(url), **options) as one:
            empty = one.status == 416  # an empty object holds no range
            if one.status >= 300 and not empty:
                raise error_of(one.status, one.headers.get("Retry-After"), one.reason or "")
            found = Stamp(0, "") if empty else _stamp_of_response(one, 0, length, or_less=True)
            data = await one.read()
        if empty:
            return b"", await self.stamp(url)
        if len(data) != min(length, found.size):
            raise TemporaryError(f"the answer ends after {len(data)} bytes")
        return data, found

    async def plain_url(self, url: str) -> PlainUrl | None:
        """Returns a URL that any reader of HTTP can read; None: there is none."""
        return PlainUrl(url) if self._plain else None

    async def close(self) -> None:
        """Closes the connections."""
        await (await self._fs.set_session()).close()

    def _request_options(self, headers: dict[str, str]) -> dict[str, object]:
        options = dict(self._fs.kwargs)
        options["headers"] = {**options.get("headers", {}), "Accept-Encoding": "identity", **headers}
        return options


class _Answers:
    """Turns aiohttp's errors into TemporaryError."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import aiohttp

        if isinstance(error, aiohttp.InvalidURL):
            raise OSError("it is no valid URL") from None
        if isinstance(error, (aiohttp.ClientError, asyncio.TimeoutError, ConnectionError)):
            # Not the error's own text: it may hold the URL.
            raise TemporaryError(f"the connection failed ({type(error).__name__})") from None


def _tag_of_content(headers: Mapping[str, str]) -> str:
    return str(headers.get("ETag") or headers.get("Last-Modified") or "")


def _stamp_of_response(answer: Any, begin: int, end: int | None, *, or_less: bool = False) -> Stamp:
    """Returns the stamp of the object that an answer belongs to, after a check that it holds the range; `or_less`: the
    part of it that the object has."""
    headers = answer.headers
    if end is None:
        length = headers.get("Content-Length")
        if length is None:
            raise OSError("the server does not say how large the object is")
        return Stamp(int(length), _tag_of_content(headers))
    if answer.status != 206:
        raise OSError(
            "the server does not read ranges of objects (it ignores the header Range): copy the data to one that does"
        )
    said, _, size = headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    if not size.isdigit():
        raise TemporaryError("the answer does not say which bytes it holds")
    if or_less:
        end = min(end, int(size))
    if said != f"{begin}-{end - 1}":
        if int(size) < end:
            raise ChangedError(f"it has {size} bytes now")
        raise TemporaryError("the answer holds other bytes than those that were asked for")
    return Stamp(int(size), _tag_of_content(headers))
