"""Lists of shards in the JSON of wids, webdataset's indexed reader."""

from __future__ import annotations

import json
import os
from pathlib import Path

from headrace._storage.remote.remote_files import Access, RemoteFiles
from headrace._storage.remote.urls import host_of_url, is_url, redact_url


class FarLists:
    """Lists that are in other machines, and the sizes that lists give for shards that do.

    Args:
        access: as for the shards.

    Attributes:
        sizes: of shards, by their URLs, and the list that says so.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self.sizes: dict[str, tuple[int, str]] = {}

    def read(self, url: str) -> bytes:
        """Returns the bytes of a list. Raises OSError."""
        return RemoteFiles([url], self._access).read(0, 0, None)

    def check(self, files: RemoteFiles) -> None:
        """Raises ValueError if a shard has another size than its list says. The stamps of the shards are known."""
        for url, stamp in zip(files.urls, files.stamps or (), strict=bool(files.stamps)):
            size, said = self.sizes.get(url, (stamp.size, ""))
            if size != stamp.size:
                raise ValueError(_other_size(redact_url(url), stamp.size, said, size))


def listed_shards(path: str, far: FarLists) -> list[str]:
    """Returns the shards that a JSON file of wids lists, relative to its folder, in its order.

    Args:
        path: a path or a URL.
        far: takes the sizes of shards that are URLs.

    Raises:
        OSError: the file cannot be read, or a shard is not there.
        ValueError: it is no such list, it names other lists, or a shard has another size than it says. Or a list in
            another machine names shards in a third one, which must not see the credentials, or here.
    """
    there, title = is_url(path), redact_url(path) if is_url(path) else path
    data = far.read(path) if there else Path(path).read_bytes()
    try:
        held = json.loads(data)
        if held["wids_version"] != 1 or held.get("datasets"):
            raise ValueError(f"{title} names other lists, or is of another version than 1; give the shards themselves")
        shards = [(str(one["url"]), one.get("filesize")) for one in held["shardlist"]]
        base = str(held.get("base") or "")
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        raise ValueError(f"{title} is no list of shards of wids: {error!r}") from error
    found = []
    for url, size in shards:
        named = url if "://" in url or not base else f"{base.rstrip('/')}/{url}"
        shard = _url_of_shard(named, path, title) if there else named
        if is_url(shard):
            if size is not None:
                far.sizes[shard] = size, title
        else:
            shard = os.path.join(os.path.dirname(path), shard.removeprefix("file://"))  # noqa: PTH118, PTH120 - strings
            if size is not None and os.stat(shard).st_size != size:  # noqa: PTH116 - a string
                raise ValueError(_other_size(shard, os.stat(shard).st_size, path, size))  # noqa: PTH116
        found.append(shard)
    return found


def _url_of_shard(named: str, path: str, title: str) -> str:
    """Returns the URL of a shard that a list in another machine names."""
    if is_url(named):
        if host_of_url(named) != host_of_url(path):
            raise ValueError(
                f"{title} lists {redact_url(named)}, in another place than itself: give the shards themselves, if "
                "storage_options may be sent there"
            )
        return named
    if "://" in named or named.startswith("/"):
        raise ValueError(f"{title} lists a file of this machine: {named}; give the shards themselves")
    head, mark, query = path.partition("?")
    return f"{head.rpartition('/')[0]}/{named}{mark}{query}"


def _other_size(shard: str, size: int, said: str, expected: object) -> str:
    return (
        f"{shard} has {size} bytes, but {said} says {expected}: it is incomplete, or it was written again; copy it "
        "again, or give the shards themselves"
    )
