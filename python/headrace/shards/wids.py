"""Lists of shards in the JSON of wids, webdataset's indexed reader."""

from __future__ import annotations

import json
import os
from pathlib import Path


def listed_shards(path: str) -> list[str]:
    """Returns the shards that a JSON file of wids lists, relative to its folder, in its order.

    Raises:
        OSError: the file cannot be read, or a shard is not there.
        ValueError: it is no such list, it names other lists, or a shard has another size than it says.
    """
    try:
        held = json.loads(Path(path).read_bytes())
        if held["wids_version"] != 1 or held.get("datasets"):
            raise ValueError(f"{path} names other lists, or is of another version than 1; give the shards themselves")
        shards = [(str(one["url"]), one.get("filesize")) for one in held["shardlist"]]
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no list of shards of wids: {error!r}") from error
    base = str(held.get("base") or "")
    found = []
    for url, size in shards:
        named = url if "://" in url or not base else f"{base.rstrip('/')}/{url}"
        if "://" in named and not named.startswith("file://"):
            raise ValueError(f"{path} lists {named}, which is no local file; copy the shards to a disk first")
        shard = os.path.join(os.path.dirname(path), named.removeprefix("file://"))  # noqa: PTH118, PTH120 - strings
        if size is not None and os.stat(shard).st_size != size:  # noqa: PTH116 - a string
            raise ValueError(
                f"{shard} has {os.stat(shard).st_size} bytes, but {path} says {size}: it is incomplete, or it was "  # noqa: PTH116
                "written again; copy it again, or give the shards themselves"
            )
        found.append(shard)
    return found
