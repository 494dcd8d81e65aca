"""Reads objects through any file system of fsspec other than HTTP and S3, by its documented methods alone."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from headrace._base.safe_exceptions import find_builtin_type
from headrace._storage.remote.clients.responses import Beginning, Body, Stamp, TemporaryError, check_stamp

_TAGS = (
    "ETag",
    "etag",
    "md5Hash",
    "generation",
    "checksum",
    "mtime",
    "LastModified",
    "last_modified",
    "modified",
    "updated",
    "created",
)
_TRUSTED_S = 10.0  # a stamp is taken again after a read if it is older


class FsspecClient:
    """Asynchronous file systems are awaited; others are called in threads. Answers do not name their object, so the
    stamp is taken again after a read, at most every ten seconds for one object."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self._checked: dict[str, float] = {}

    async def stamp(self, url: str) -> Stamp:
        """Returns an object's stamp."""
        info = await self._call("info", url)
        if info.get("size") is None:
            raise OSError("the file system does not say how large the object is")
        found = Stamp(int(info["size"]), next((str(info[name]) for name in _TAGS if info.get(name)), ""))
        self._checked[url] = time.monotonic()
        return found

    async def read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]:
        """Returns the bytes [begin, end) of an object, or all of it, and its stamp."""
        data = bytes(await self._call("cat_file", url, start=None if end is None else begin, end=end))
        known = stamp
        fits = stamp is not None and len(data) == (stamp.size if end is None else end - begin)
        if known is None or not fits or time.monotonic() - self._checked.get(url, 0.0) > _TRUSTED_S:
            self._fs.invalidate_cache()
            known = await self.stamp(url)
            check_stamp(known, stamp)
        if len(data) != (known.size if end is None else end - begin):
            raise TemporaryError(f"the answer has {len(data)} bytes")
        return data, known

    async def read_beginning(self, url: str, length: int) -> Beginning:
        """Returns the first bytes of an object, all of them if it has no more than `length`, and its stamp."""
        stamp = await self.stamp(url)
        if not stamp.size:
            return Beginning(b"", stamp)
        return Beginning(*await self.read(url, 0, min(length, stamp.size), stamp))

    async def whole(self, url: str) -> Body:
        """Is not called: `cat_file` reads ranges."""
        raise NotImplementedError

    async def plain_url(self, url: str) -> None:
        """Returns None: such an object has no URL that any reader of HTTP can read."""

    async def close(self) -> None:
        """Does nothing: fsspec documents no way to close a file system."""

    async def _call(self, method: str, url: str, **options: Any) -> Any:
        path = self._fs._strip_protocol(url)
        try:
            if self._fs.async_impl:
                return await getattr(self._fs, "_" + method)(path, **options)
            return await asyncio.to_thread(getattr(self._fs, method), path, **options)
        except (FileNotFoundError, PermissionError) as error:
            raise find_builtin_type(error)(f"no such object, or no permission ({type(error).__name__})") from None
        except Exception as error:
            raise TemporaryError(f"the file system failed ({type(error).__name__})") from None
