"""URLs: which paths are some, what may be shown of them, and what of them names an object."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
# Parts of a query that only prove who asks. An object keeps its name when they change.
_SIGNATURE = re.compile(
    r"(x-amz-|x-goog-)|(awsaccesskeyid|signature|expires|key-pair-id|policy|token|sig|se|sp|sv|sr)$", re.I
)


def is_url(path: Any) -> bool:
    """Whether a path names an object that fsspec reads: it has a scheme, other than ``file:``."""
    match = _SCHEME.match(path) if isinstance(path, str) else None
    return match is not None and match[1].lower() != "file"


def all_urls(paths: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether all paths are URLs; False if none is. Raises ValueError for a mixture."""
    kinds = {is_url(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError("some of the paths are URLs and some are files: make a dataset of each, and a ConcatDataset")
    return kinds == {True}


def protocol(url: str) -> str:
    return url.partition("://")[0].lower()


def shown(url: str) -> str:
    """Returns a URL without user, password, query and fragment, which may hold credentials."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def host(url: str) -> str:
    """Returns the scheme and the host, or the bucket."""
    return "://".join((protocol(url), urlsplit(url).netloc.rpartition("@")[2]))


def named(url: str) -> str:
    """Returns what of a URL names the object: without credentials and signatures."""
    if protocol(url) not in ("http", "https"):
        return shown(url) if "@" in urlsplit(url).netloc else url
    parts = urlsplit(url)
    query = [(key, value) for key, value in parse_qsl(parts.query, True) if not _SIGNATURE.match(key)]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, urlencode(query), ""))
