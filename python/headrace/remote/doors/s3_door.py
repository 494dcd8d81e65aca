"""Reads objects of S3, through s3fs: every answer names the object that it is of."""

from __future__ import annotations

import asyncio
from typing import Any

from headrace.remote.doors.answers import ChangedError, Stamp, TemporaryError, check_stamp, error_of


class S3Door:
    """Reads with the client and the credentials of s3fs."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        fs.retries = 1  # Attempts makes requests again

    async def stamp(self, url: str) -> Stamp:
        """Returns an object's stamp."""
        one = await self._call("head_object", url, {})
        return Stamp(int(one["ContentLength"]), str(one.get("ETag", "")))

    async def read(self, url: str, begin: int, end: int | None, stamp: Stamp | None) -> tuple[bytes, Stamp]:
        """Returns the bytes [begin, end) of an object, or all of it, and its stamp."""
        options = {} if end is None else {"Range": f"bytes={begin}-{end - 1}"}
        if stamp is not None and stamp.tag:
            options["IfMatch"] = stamp.tag
        data, found = await self._answer(url, options, whole=end is None, stamp=stamp)
        if len(data) != (found.size if end is None else end - begin):
            raise TemporaryError(f"the answer ends after {len(data)} bytes")
        return data, found

    async def first(self, url: str, length: int) -> tuple[bytes, Stamp]:
        """Returns the first bytes of an object, all of them if it has no more than `length`, and its stamp."""
        try:
            data, found = await self._answer(url, {"Range": f"bytes=0-{length - 1}"}, whole=False, stamp=None)
        except ChangedError:  # no range lies in an empty object
            found = await self.stamp(url)
            if found.size:
                raise
            return b"", found
        if len(data) != min(length, found.size):
            raise TemporaryError(f"the answer ends after {len(data)} bytes")
        return data, found

    async def _answer(
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

    async def close(self) -> None:
        """Closes the connections."""
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
            found = getattr(error.__cause__, "response", None) or getattr(error, "response", None)
            response: dict[str, Any] = found if isinstance(found, dict) else {}
            said = response.get("ResponseMetadata", {})
            status = said.get("HTTPStatusCode")
            if status:
                code = str(response.get("Error", {}).get("Code", ""))
                raise error_of(status, said.get("HTTPHeaders", {}).get("retry-after"), code) from None
            if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError", "ParamValidationError"):
                raise PermissionError(
                    f"S3 needs credentials ({type(error).__name__}); anonymous: storage_options={{'anon': True}}"
                ) from None
            if isinstance(error, (FileNotFoundError, PermissionError)):
                raise type(error)(f"no such object, or no permission ({type(error).__name__})") from None
            raise TemporaryError(f"the connection failed ({type(error).__name__})") from None
