"""The indexes of many shards in one file: a bucket of a thousand shards is opened with one request, not with two for
each of them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace._base.types import Array
from headrace._storage.remote.clients.responses import Stamp
from headrace.datasets.tar_shards.tar_index import TarIndex, is_consistent

NAME = "headrace.index.npz"  # of the file that is looked for beside the first shard
_VERSION = 2  # 1: of shards whose metadata of macOS were members
_OF_MEMBERS = {"extension": "u4", "offset": "u8", "length": "u8", "number": "i8"}
_OF_SHARDS = {"sizes": "i8", "members": "i8", "samples": "i8", "key_bytes": "i8", "kinds": "i8", "has_end": "?"}


@dataclass(frozen=True)
class Known:
    """A shard and its index, as they were when the file was written; `stamp.tag` may be "" (unknown)."""

    stamp: Stamp
    index: TarIndex


def pack_indexes(names: Sequence[str], stamps: Sequence[Stamp], indexes: Sequence[TarIndex]) -> bytes:
    """Returns the content of the file.

    Args:
        names: of the shards, without their folders.
        stamps: what the shards are; local files have no tag that a server would know.
        indexes: of the shards.
    """
    arrays: dict[str, Array] = {
        "version": np.array(_VERSION),
        "names": np.array([name.encode(errors="surrogateescape") for name in names], np.bytes_),
        "tags": np.array([stamp.tag.encode() for stamp in stamps], np.bytes_),
        "sizes": np.array([stamp.size for stamp in stamps], np.int64),
        "members": np.array([len(one.sample) for one in indexes], np.int64),
        "samples": np.array([len(one.key_offsets) for one in indexes], np.int64),
        "key_bytes": np.array([len(one.keys) for one in indexes], np.int64),
        "kinds": np.array([len(one.extensions) for one in indexes], np.int64),
        "has_end": np.array([bool(one.has_end) for one in indexes]),
        "extensions": np.array([name for one in indexes for name in one.extensions.tolist()], np.bytes_),
        # Differences compress: nearly all are 0 or 1, and offsets follow from lengths.
        "steps": np.concatenate([np.diff(one.sample, prepend=np.uint32(0)) for one in indexes]).astype(np.uint8),
        "keys": np.concatenate([one.keys for one in indexes]),
        **{name: np.concatenate([getattr(one, name) for one in indexes]) for name in _OF_MEMBERS},
    }
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def unpack_indexes(data: bytes) -> dict[str, Known] | None:
    """Returns the shards by their names; None if the bytes are no such file, or its numbers contradict each other."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            if int(file["version"]) != _VERSION:
                return None
            held = {name: file[name] for name in file.files}
        return _unpack_shards(held)
    except (OSError, ValueError, KeyError, EOFError, TypeError, IndexError, zipfile.BadZipFile):
        return None


def _unpack_shards(held: dict[str, Array]) -> dict[str, Known] | None:
    count = len(held["names"])
    for name, kind in _OF_SHARDS.items():
        if held[name].shape != (count,) or held[name].dtype != np.dtype(kind) or int(held[name].min(initial=0)) < 0:
            return None
    ends = {name: np.cumsum(held[name]) for name in ("members", "samples", "key_bytes", "kinds")}
    totals = {name: int(end[-1]) if count else 0 for name, end in ends.items()}
    expected = {**dict.fromkeys(("steps", *_OF_MEMBERS), totals["members"])}
    expected |= {"keys": totals["key_bytes"], "extensions": totals["kinds"], "tags": count}
    kinds = {**_OF_MEMBERS, "steps": "u1", "keys": "u1"}
    if any(held[name].shape != (length,) for name, length in expected.items()):
        return None
    if any(held[name].dtype != np.dtype(kind) for name, kind in kinds.items()):
        return None
    found = {}
    for i, name in enumerate(held["names"].tolist()):
        part = {kind: slice(int(end[i] - held[kind][i]), int(end[i])) for kind, end in ends.items()}
        size, keys = int(held["sizes"][i]), held["keys"][part["key_bytes"]]
        index = TarIndex(
            stamp=np.array([size, 0], np.int64),
            sample=np.cumsum(held["steps"][part["members"]], dtype=np.uint32),
            keys=keys,
            key_offsets=np.concatenate([[0], np.flatnonzero(keys == 0) + 1])[:-1].astype(np.uint64),
            extensions=held["extensions"][part["kinds"]],
            has_end=held["has_end"][i],
            **{kind: held[kind][part["members"]] for kind in _OF_MEMBERS},
        )
        if len(index.key_offsets) != int(held["samples"][i]) or not is_consistent(index):
            return None
        found[name.decode(errors="surrogateescape")] = Known(Stamp(size, held["tags"][i].decode()), index)
    return found
