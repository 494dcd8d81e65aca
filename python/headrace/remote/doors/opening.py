"""The way to a URL's objects: fsspec's file system of its protocol, opened in the event loop that reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from headrace.remote.doors.answers import Stamp
from headrace.remote.doors.http_door import HttpDoor
from headrace.remote.doors.plain_door import PlainDoor
from headrace.remote.doors.s3_door import S3Door
from headrace.remote.urls import protocol

_S3_RETRIES = {"config_kwargs": {"retries": {"max_attempts": 0}}}  # botocore's own would hide errors and add requests


class Door(Protocol):
    """Reads objects. Raises TemporaryError where another try may help, and OSError where it does not."""

    async def stamp(self, url: str) -> Stamp: ...

    async def read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]: ...

    async def first(self, url: str, length: int) -> tuple[bytes, Stamp]:
        """Returns the first bytes of an object, all of them if it has no more than `length`, and its stamp."""

    async def close(self) -> None: ...


def check_installed(url: str) -> None:
    """Raises ImportError, with the remedy, if the packages that read a URL are missing; ValueError for a protocol that
    fsspec does not know."""
    try:
        import fsspec
    except ImportError:
        raise ImportError(
            f"{protocol(url)}: URLs are read with fsspec, which is not installed: pip install 'headrace[remote]'"
        ) from None
    try:
        fsspec.get_filesystem_class(protocol(url))
    except ImportError as error:
        raise ImportError(f"{protocol(url)}: URLs need another package: {error}") from None
    except ValueError:
        raise ValueError(f"fsspec knows no protocol {protocol(url)!r}") from None


def open_door(url: str, options: Mapping[str, Any]) -> Door:
    """Returns the way to a URL's objects. Called in the event loop that reads."""
    import asyncio

    import fsspec

    kind = fsspec.get_filesystem_class(protocol(url))
    given = dict(options)
    if kind.async_impl:
        given |= {"asynchronous": True, "loop": asyncio.get_running_loop()}
    given["skip_instance_cache"] = True
    if protocol(url) in ("http", "https"):
        return HttpDoor(kind(**given))
    if protocol(url) in ("s3", "s3a"):
        return S3Door(kind(**(_S3_RETRIES | given)))
    return PlainDoor(kind(**given))
