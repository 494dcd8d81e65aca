"""Reads objects over HTTP, in the session of fsspec's file system: every answer names the object that it belongs to."""

from __future__ import annotations

from typing import Any

from headrace._storage.remote.clients.http_body import (
    Answers,
    HttpBody,
    encoding,
    says_its_end,
    size_of,
    tag_of,
)
from headrace._storage.remote.clients.responses import (
    UNKNOWN_SIZE,
    Beginning,
    ChangedError,
    NoRangesError,
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
            Answers(),
            session.head(self._fs.encode_url(url), **self._request_options({}), allow_redirects=True) as one,
        ):
            if one.status >= 400:
                raise error_of(one.status, one.headers.get("Retry-After"), one.reason or "")
            if "Content-Length" not in one.headers:
                raise OSError("the server does not say how large the object is")
            return Stamp(UNKNOWN_SIZE if encoding(one) else int(one.headers["Content-Length"]), tag_of(one.headers))

    async def read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]:
        """Returns the bytes [begin, end) of an object, or all of it, and its stamp."""
        headers = {} if end is None else {"Range": f"bytes={begin}-{end - 1}"}
        if stamp is not None and stamp.tag.startswith('"'):  # a weak ETag never matches
            headers["If-Match"] = stamp.tag
        session = await self._fs.set_session()
        async with Answers(), session.get(self._fs.encode_url(url), **self._request_options(headers)) as one:
            if one.status >= 300:
                raise error_of(one.status, one.headers.get("Retry-After"), one.reason or "")
            found = _stamp_of_response(one, begin, end)
            check_stamp(found, stamp)
            data = await one.read()
        if end is None and found.size == UNKNOWN_SIZE:
            found = found._replace(size=len(data))
        if len(data) != (found.size if end is None else end - begin):
            raise TemporaryError(f"the answer ends after {len(data)} bytes")
        return data, found

    async def read_beginning(self, url: str, length: int) -> Beginning:
        """Returns the first bytes of an object, all of them if it has no more than `length`, and its stamp; or the
        object as it arrives, of which this number of bytes is here, where the server reads no ranges."""
        one = await self._begin(url, {"Range": f"bytes=0-{length - 1}"})
        try:
            if one.status == 200:
                return await _arriving(one, length)
            if one.status == 206 and encoding(one):
                one.close()
                one = await self._begin(url, {})
                return await _arriving(one, length)
            if one.status == 416:  # an empty object holds no range
                one.close()
                return Beginning(b"", await self.stamp(url))
            found = _stamp_of_response(one, 0, length, or_less=True)
            async with Answers():
                data = await one.read()
            if len(data) != min(length, found.size):
                raise TemporaryError(f"the answer ends after {len(data)} bytes")
            return Beginning(data, found)
        except BaseException:
            one.close()
            raise

    async def whole(self, url: str) -> HttpBody:
        """Returns an object as it arrives."""
        return HttpBody(await self._begin(url, {}))

    async def _begin(self, url: str, headers: dict[str, str]) -> Any:
        """Returns an answer whose body has not been read; its reader watches the time."""
        from aiohttp import ClientTimeout

        options = self._request_options(headers) | {"timeout": ClientTimeout(total=None)}
        session = await self._fs.set_session()
        async with Answers():
            one = await session.get(self._fs.encode_url(url), **options)
        if one.status >= 300 and one.status != 416:
            one.close()
            raise error_of(one.status, one.headers.get("Retry-After"), one.reason or "")
        return one

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


def _stamp_of_response(answer: Any, begin: int, end: int | None, *, or_less: bool = False) -> Stamp:
    """Returns the stamp of the object that an answer belongs to, after a check that it holds the range; `or_less`: the
    part of it that the object has."""
    headers = answer.headers
    if end is None:
        if (size := size_of(answer)) == UNKNOWN_SIZE and not says_its_end(answer):
            raise OSError("the server does not say how large the object is")
        return Stamp(size, tag_of(headers))
    if answer.status != 206:
        raise NoRangesError
    if encoding(answer):
        raise NoRangesError(f"it encodes what it sends, with {encoding(answer)}")
    said, _, size = headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    if not size.isdigit():
        raise TemporaryError("the answer does not say which bytes it holds")
    if or_less:
        end = min(end, int(size))
    if said != f"{begin}-{end - 1}":
        if int(size) < end:
            raise ChangedError(f"it has {size} bytes now")
        raise TemporaryError("the answer holds other bytes than those that were asked for")
    return Stamp(int(size), tag_of(headers))


async def _arriving(answer: Any, length: int) -> Beginning:
    """Returns an object as it arrives; waits for its first bytes, so that small ones need no further turn."""
    body = HttpBody(answer)
    await body.await_first(length)
    return Beginning(b"", body.stamp, body)
