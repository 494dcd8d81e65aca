"""What comes of a request: an object's stamp, and the errors that decide whether it is made again."""

from __future__ import annotations

import errno
import re
from typing import NamedTuple

from headrace._base.errors import HeadraceError


class Stamp(NamedTuple):
    """What an object is: its size, and what changes with its content."""

    size: int
    tag: str  # ETag, or time of modification; "": the server says neither


# Times as HTTP, Python and ISO 8601 write them, and seconds since 1970.
_TIME = re.compile(r"[A-Za-z]{3,9},? .*|[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[0-9.]+")


def is_strong(stamp: Stamp) -> bool:
    """Whether an object with this stamp has the same bytes: by an ETag that is not weak, or by a checksum.

    A time of modification is not enough: within a second an object can change, and programs set such times.
    """
    tag = stamp.tag
    return bool(tag) and not tag.startswith("W/") and (tag.startswith('"') or _TIME.fullmatch(tag) is None)


class PlainUrl(NamedTuple):
    """A URL that gives an object to any reader of HTTP: it needs no header with credentials.

    Attributes:
        lasts_s: seconds for which it is used; None: for ever.
        is_encoded: whether it must be sent as it is written.
    """

    url: str
    lasts_s: float | None = None
    is_encoded: bool = False


class TemporaryError(HeadraceError):
    """The request may succeed when it is made again.

    Attributes:
        wait_s: seconds that the server asks to wait before.
    """

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class ChangedError(HeadraceError, OSError):
    """The object is not the one that was indexed."""

    def __init__(self, what: str, where: str = "") -> None:
        self.what = what
        changed = (
            f"the object was changed after it was indexed ({what}): make the dataset again; if an index is beside it, "
            "write that again first"
        )
        super().__init__(errno.ESTALE, f"{where}: {changed}" if where else changed)


_AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504))


def error_of(status: int, retry_after: str | None, reason: str) -> Exception:
    """Returns the error of an HTTP status that is not a success."""
    said = f"HTTP {status} {reason}".strip()
    if status in _AGAIN:
        digits = (retry_after or "").strip()
        return TemporaryError(said, float(digits) if digits.isdigit() else 0.0)
    if status in (404, 410):
        return FileNotFoundError(errno.ENOENT, f"there is no such object ({said})")
    if status in (401, 403):
        return PermissionError(errno.EACCES, f"no permission to read it ({said}); pass credentials in storage_options=")
    if status in (412, 416):
        return ChangedError(said)
    return OSError(errno.EIO, f"the server refuses it ({said})")


def check_stamp(found: Stamp, stamp: Stamp | None) -> None:
    """Raises ChangedError if an object has another stamp than before."""
    if stamp is None:
        return
    if found.size != stamp.size:
        raise ChangedError(f"{stamp.size} bytes then, {found.size} now")
    if found.tag and stamp.tag and found.tag != stamp.tag:
        raise ChangedError("its ETag, or its time of modification, is another one")
