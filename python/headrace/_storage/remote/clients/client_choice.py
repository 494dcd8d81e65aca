"""The interface of a client, and which one a URL gets: HTTP's, S3's, or that of fsspec's other file systems."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Protocol

from headrace._base.messages import install_command
from headrace._storage.remote.clients.fsspec_client import FsspecClient
from headrace._storage.remote.clients.http_client import HttpClient
from headrace._storage.remote.clients.local_client import LocalClient
from headrace._storage.remote.clients.responses import Beginning, Body, PlainUrl, Stamp
from headrace._storage.remote.clients.s3_client import S3Client, can_use_signed_urls
from headrace._storage.remote.urls import protocol_of_url

_NO_RETRIES = {"max_attempts": 0}  # botocore's own would hide errors and add requests


class Client(Protocol):
    """Reads objects. Raises TemporaryError where another try may help, and OSError where it does not."""

    async def stamp(self, url: str) -> Stamp: ...

    async def read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]: ...

    async def read_beginning(self, url: str, length: int) -> Beginning:
        """Returns the first bytes of an object, all of them if it has no more than `length`, and its stamp; or the
        object as it arrives, of which this number of bytes is here, where the server reads no ranges."""

    async def whole(self, url: str) -> Body:
        """Returns an object as it arrives, where the server reads no ranges."""

    async def plain_url(self, url: str) -> PlainUrl | None:
        """Returns a URL that any reader of HTTP can read; None: there is none."""

    async def close(self) -> None: ...


# The packages that fsspec reads a protocol with, where headrace has no extra for them.
_PACKAGES = {"hf": "huggingface_hub", **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs")}


def check_installed(url: str) -> None:
    """Raises ImportError, with the remedy, if the packages that read a URL are missing; ValueError for a protocol that
    fsspec does not know."""
    if protocol_of_url(url) == "file":
        return
    try:
        import fsspec
    except ImportError:
        remedy = _remedy(protocol_of_url(url)) or _remedy("http")
        raise ImportError(
            f"{protocol_of_url(url)}: URLs are read with fsspec, which is not installed: {remedy}"
        ) from None
    try:
        fsspec.get_filesystem_class(protocol_of_url(url))
    except ImportError as error:
        remedy = _remedy(protocol_of_url(url)) or str(error)
        raise ImportError(f"{protocol_of_url(url)}: URLs need another package: {remedy}") from None
    except ValueError:
        near = difflib.get_close_matches(protocol_of_url(url), ("http", "https", *_PACKAGES), 1)
        hint = f"did you mean {near[0]}://?" if near else "http://, https://, s3://, gs://, hf:// and others are known"
        raise ValueError(f"fsspec knows no protocol {protocol_of_url(url)!r}: {hint}") from None


def _remedy(name: str) -> str | None:
    """The command that installs what a protocol needs, fsspec included; None: not known."""
    if name in ("http", "https"):
        return install_command("remote", "fsspec[http]")
    if name in ("s3", "s3a"):
        return install_command("s3", "s3fs")
    if name in ("gs", "gcs"):
        return install_command("gcs", "gcsfs")
    return f"pip install {_PACKAGES[name]}" if name in _PACKAGES else None


def open_client(url: str, options: Mapping[str, object], requests: int) -> Client:
    """Returns the way to a URL's objects. Called in the event loop that reads.

    Args:
        requests: how many may be under way; the libraries' own limits are 10 for S3 and 100 for HTTP.
    """
    if protocol_of_url(url) == "file":
        return LocalClient()
    import asyncio

    import fsspec

    kind = fsspec.get_filesystem_class(protocol_of_url(url))
    given: dict[str, Any] = dict(options)
    if kind.async_impl:
        given |= {"asynchronous": True, "loop": asyncio.get_running_loop()}
    given["skip_instance_cache"] = True
    if protocol_of_url(url) in ("http", "https"):
        return HttpClient(kind(**_options_without_limit(given)), plain=not (options or _has_defaults("http", "https")))
    if protocol_of_url(url) in ("s3", "s3a"):
        own = {"retries": _NO_RETRIES, "max_pool_connections": requests}
        given["config_kwargs"] = own | dict(given.get("config_kwargs") or {})
        return S3Client(
            kind(**given),
            _web_client(given) if can_use_signed_urls(options) and not _has_defaults("s3", "s3a") else None,
        )
    return FsspecClient(kind(**given))


def _options_without_limit(given: dict[str, Any]) -> dict[str, Any]:
    """The options of an HTTP file system, whose session has no limit of its own."""
    from aiohttp import TCPConnector

    client = dict(given.get("client_kwargs") or {})
    if "connector" not in client and "get_client" not in given:
        client["connector"] = TCPConnector(limit=0)
    return given | {"client_kwargs": client} if client else given


def _web_client(given: Mapping[str, Any]) -> HttpClient:
    """Reads signed URLs; a proxy that the environment names is used, as S3's own client does."""
    import fsspec

    shared = {name: given[name] for name in ("asynchronous", "loop", "skip_instance_cache")}
    options = _options_without_limit(shared | {"client_kwargs": {"trust_env": True}, "encoded": True})
    return HttpClient(fsspec.get_filesystem_class("https")(**options))


def _has_defaults(*protocols: str) -> bool:
    """Whether the user's configuration of fsspec says how objects are read."""
    from fsspec.config import conf

    return any(conf.get(name) for name in protocols)
