"""URLs: which paths are some, what may be shown of them, and what of them names an object."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit, urlunsplit

from headrace._storage.remote.signatures import strip_signature

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
# Options of fsspec's file systems that only authenticate, and select no object.
_S3 = frozenset(("key", "secret", "token", "anon"))
_AZURE = frozenset(("account_key", "sas_token", "credential", "client_id", "client_secret", "tenant_id", "anon"))
_CREDENTIALS = {
    **dict.fromkeys(("s3", "s3a"), _S3),
    **dict.fromkeys(("gs", "gcs"), frozenset(("token", "project"))),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), _AZURE),
}


def is_url(path: object) -> bool:
    """Whether a path names an object that fsspec reads: it has a scheme, other than ``file:``."""
    match = _SCHEME.match(path) if isinstance(path, str) else None
    return match is not None and match[1].lower() != "file"


def all_urls(paths: Iterable[str | os.PathLike[str]]) -> bool:
    """Whether all paths are URLs; False if none is. Raises ValueError for a mixture."""
    kinds = {is_url(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError("some of the paths are URLs and some are files: make a dataset of each, and a ConcatDataset")
    return kinds == {True}


def protocol_of_url(url: str) -> str:
    return url.partition("://")[0].lower() if is_url(url) else "file"


def redact_url(url: str) -> str:
    """Returns a URL without user, password, query and fragment, which may hold credentials; a path as it is."""
    if not is_url(url):
        return url
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def host_of_url(url: str) -> str:
    """Returns the scheme and the host, or the bucket."""
    netloc = urlsplit(url).netloc if is_url(url) else ""
    return "://".join((protocol_of_url(url), netloc.rpartition("@")[2]))


def name_object(url: str, options: Mapping[str, object] | None = None) -> str:
    """Returns what names an object: its URL without a signature that is known, and the options that it is read with
    without credentials that are known. It may hold others, so it is hashed, and not shown.

    Args:
        options: of fsspec's file system. Endpoints, headers and versions select objects.
    """
    kind, rest = protocol_of_url(url), dict(options or {})
    if kind in ("http", "https"):
        parts = urlsplit(url)
        query = strip_signature(parts.hostname or "", parts.query)
        url = urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))
    else:
        rest = {name: value for name, value in rest.items() if name not in _CREDENTIALS.get(kind, ())}
    return repr((url, sorted(rest.items(), key=lambda one: one[0])))
