"""Reads objects of S3, through s3fs: every answer names the object that it belongs to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from headrace._base.safe_exceptions import find_builtin_type
from headrace._storage.remote.clients.http_client import HttpClient
from headrace._storage.remote.clients.responses import (
    Beginning,
    Body,
    ChangedError,
    PlainUrl,
    Stamp,
    TemporaryError,
    UnreachableError,
    check_stamp,
    error_of,
)

_LASTS_S = 3600  # of a signature
_USED_S = 1800.0  # age at which it is replaced
_SIGNATURES = 4096  # that are kept
# Options under which a signed URL reads what s3fs would read. Others change the requests.
_SIGNED = frozenset(("key", "secret", "token", "anon", "endpoint_url", "profile", "client_kwargs"))
_SIGNED_CLIENT = frozenset(("endpoint_url", "region_name"))


def can_use_signed_urls(options: Mapping[str, Any]) -> bool:
    """Whether objects can be read by signed URLs, whatever else the options of s3fs say."""
    return options.keys() <= _SIGNED and (options.get("client_kwargs") or {}).keys() <= _SIGNED_CLIENT


class S3Client:
    """Reads with the client and the credentials of s3fs.

    Args:
        fs: s3fs's file system.
        web: reads URLs that the client signs, which takes less of the processor than the client; None: not to be used.
    """

    def __init__(self, fs: Any, web: HttpClient | None = None) -> None:
        self._fs, self._web = fs, web
        self._signs = web is not None
        self._signatures: dict[str, tuple[str, float]] = {}
        fs.retries = 1  # Attempts makes requests again

    async def stamp(self, url: str) -> Stamp:
        """Returns an object's stamp."""
        one = await self._call("head_object", url, {})
        return Stamp(int(one["ContentLength"]), str(one.get("ETag", "")))

    async def read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]:
        """Returns the bytes [begin, end) of an object, or all of it, and its stamp."""
        tried = self._signs
        if tried and self._web is not None:
            try:
                return await self._web.read(await self._sign_url(url), begin, end, stamp)
            except OSError:  # what S3 refuses, its client explains
                self._signatures.pop(url, None)
        found = await self._read(url, begin, end, stamp)
        self._signs = self._signs and not tried  # the client may read what a signature does not
        return found

    async def _read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]:
        options = {} if end is None else {"Range": f"bytes={begin}-{end - 1}"}
        if stamp is not None and stamp.tag:
            options["IfMatch"] = stamp.tag
        data, found = await self._get_object(url, options, whole=end is None, stamp=stamp)
        if len(data) != (found.size if end is None else end - begin):
            raise TemporaryError(f"the answer ends after {len(data)} bytes")
        return data, found

    async def read_beginning(self, url: str, length: int) -> Beginning:
        """Returns the first bytes of an object, all of them if it has no more than `length`, and its stamp."""
        try:
            data, found = await self._get_object(url, {"Range": f"bytes=0-{length - 1}"}, whole=False, stamp=None)
        except ChangedError:  # an empty object holds no range
            found = await self.stamp(url)
            if found.size:
                raise
            return Beginning(b"", found)
        if len(data) != min(length, found.size):
            raise TemporaryError(f"the answer ends after {len(data)} bytes")
        return Beginning(data, found)

    async def whole(self, url: str) -> Body:
        """Is not called: S3 reads ranges."""
        raise NotImplementedError

    async def _get_object(
        self, url: str, options: dict[str, str], *, whole: bool, stamp: Stamp | None
    ) -> tuple[bytes, Stamp]:
        one = await self._call("get_object", url, options)
        size = one["ContentLength"] if whole else str(one.get("ContentRange", "")).rpartition("/")[2]
        found = Stamp(int(size), str(one.get("ETag", "")))
        try:
            check_stamp(found, stamp)
            data: bytes = await one["Body"].read()
        except OSError:
            raise
        except Exception as error:  # of the connection
            raise TemporaryError(f"the connection failed ({type(error).__name__})") from None
        finally:
            one["Body"].close()
        return data, found

    async def plain_url(self, url: str) -> PlainUrl | None:
        """Returns a URL that any reader of HTTP can read; None: there is none."""
        return None if not self._signs else PlainUrl(await self._sign_url(url), _USED_S, is_encoded=True)

    async def _sign_url(self, url: str) -> str:
        """Returns a URL with a signature that lasts for `_USED_S` at least."""
        signed, until = self._signatures.get(url, ("", 0.0))
        if time.monotonic() >= until:
            try:
                signed = await self._fs._url(url, expires=_LASTS_S)
            except Exception as error:
                raise _translate_error(error) from None
            while len(self._signatures) >= _SIGNATURES:
                del self._signatures[next(iter(self._signatures))]
            self._signatures[url] = signed, time.monotonic() + _LASTS_S - _USED_S
        return signed

    async def close(self) -> None:
        """Closes the connections."""
        if self._web is not None:
            await self._web.close()
        if (client := getattr(self._fs, "_s3", None)) is not None:
            await client.close()

    async def _call(self, method: str, url: str, options: dict[str, str]) -> Any:
        bucket, key, version = self._fs.split_path(url)
        more = {"VersionId": version} if version else {}
        try:
            return await self._fs._call_s3(method, Bucket=bucket, Key=key, **more, **options)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise _translate_error(error) from None


def _translate_error(error: Exception) -> BaseException:
    """What an error of s3fs, or of the client that it uses, means."""
    found = getattr(error.__cause__, "response", None) or getattr(error, "response", None)
    response: dict[str, Any] = found if isinstance(found, dict) else {}
    said = response.get("ResponseMetadata", {})
    status = said.get("HTTPStatusCode")
    if status:
        code = str(response.get("Error", {}).get("Code", ""))
        return error_of(status, said.get("HTTPHeaders", {}).get("retry-after"), code)
    if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError", "ParamValidationError"):
        return PermissionError(
            f"S3 needs credentials ({type(error).__name__}); anonymous: storage_options={{'anon': True}}"
        )
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return find_builtin_type(error)(f"no such object, or no permission ({type(error).__name__})")
    if type(error).__name__ == "EndpointConnectionError":
        return UnreachableError(type(error).__name__)
    return TemporaryError(f"the connection failed ({type(error).__name__})")
