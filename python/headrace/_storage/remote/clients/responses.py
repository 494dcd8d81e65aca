"""What comes of a request: an object's stamp, and the errors that decide whether it is made again."""

from __future__ import annotations

import errno
import re
from typing import NamedTuple, Protocol

from headrace._base.errors import HeadraceError

#: Size of an object whose server does not say it. Above every size, and below what a tar archive may have.
UNKNOWN_SIZE = 1 << 40
#: Beginning of the tag of a file of this machine: its time of modification, which a copy elsewhere does not have.
LOCAL_TAG = "file "


class Stamp(NamedTuple):
    """What an object is: its size, and what changes with its content."""

    size: int  # or UNKNOWN_SIZE
    tag: str  # ETag, or time of modification; "": the server says neither


def portable(stamp: Stamp) -> tuple[int, str]:
    """Returns what of a stamp holds for a copy of the object on another machine, too."""
    return stamp.size, "" if stamp.tag.startswith(LOCAL_TAG) else stamp.tag


class Body(Protocol):
    """An object that arrives from front to back.

    Attributes:
        stamp: of the object.
        position: number of bytes that were taken.
        says_its_end: whether an answer that is cut is noticed.
    """

    stamp: Stamp
    position: int
    says_its_end: bool

    async def take(self, most: int) -> bytes:
        """Returns the next bytes, `most` or fewer; none at the end. Raises TemporaryError."""

    def close(self) -> None: ...


class Beginning(NamedTuple):
    """The answer about a part of an object.

    Attributes:
        data: the part; empty where the server reads no ranges.
        stamp: of the object.
        body: the whole object, where the server sends it instead of the part.
    """

    data: bytes
    stamp: Stamp
    body: Body | None = None


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


class UnreachableError(TemporaryError):
    """No connection to the host could be made: nothing listens there, or the name is not known.

    Args:
        why: what the system says, without the URL.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"the connection failed ({why})")
        self.why = why


class ChangedError(HeadraceError, OSError):
    """The object is not the one that was indexed."""

    def __init__(self, what: str, where: str = "") -> None:
        self.what = what
        changed = (
            f"the object was changed after it was indexed ({what}): make the dataset again; if an index is beside it, "
            "write that again first"
        )
        super().__init__(errno.ESTALE, f"{where}: {changed}" if where else changed)


_IGNORED = "it ignores the header Range, as python -m http.server does"


class NoRangesError(HeadraceError, OSError):
    """The server sends whole objects only."""

    def __init__(self, why: str = _IGNORED, where: str = "") -> None:
        self.why = why
        said = (
            f"the server does not read ranges of objects ({why}), which random access needs: read tar shards with "
            "headrace.TarStream, from front to back, or copy the data to a disk or to a server that reads ranges "
            "(nginx, S3)"
        )
        super().__init__(errno.EIO, f"{where}: {said}" if where else said)


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
    if found.size != stamp.size and UNKNOWN_SIZE not in (found.size, stamp.size):
        raise ChangedError(f"{stamp.size} bytes then, {found.size} now")
    if found.tag.startswith(LOCAL_TAG) != stamp.tag.startswith(LOCAL_TAG):
        return  # a copy, here and on a server
    if found.tag and stamp.tag and found.tag != stamp.tag:
        raise ChangedError("its ETag, or its time of modification, is another one")
