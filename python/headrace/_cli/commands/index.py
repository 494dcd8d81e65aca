"""Joins the shards of a pack that several machines wrote, or indexes tar shards of any writer, in one file if asked."""

from __future__ import annotations

import sys
from pathlib import Path

from headrace._cli.pack.completion import join
from headrace._cli.pack.manifest import NAME
from headrace._storage.remote.clients.responses import Stamp
from headrace._storage.remote.files import Access
from headrace._storage.remote.urls import is_url
from headrace.datasets.tar_shards.joined_index import packed
from headrace.datasets.tar_shards.remote_index import remote_indexes, remote_shards
from headrace.datasets.tar_shards.shard_urls import shard_paths
from headrace.datasets.tar_shards.tar_index import index_of


def run(shards: str, out: Path | None) -> int:
    """Prints what was joined.

    Args:
        shards: a folder, or shards as TarShards takes them.
        out: where to write the joined index; None: nowhere.

    Returns:
        The exit status: 0 all shards are there, 1 some are missing or damaged, 2 there is nothing to index, or URLs
        are given without `out`.
    """
    folder = Path(shards)
    try:
        if out is None:
            if is_url(shards):
                print("headrace index: shards that are URLs need --out FILE", file=sys.stderr)
                return 2
            return _join(folder) if (folder / NAME).exists() else _index(folder)
        return _write(sorted(map(str, folder.glob("*.tar"))) if folder.is_dir() else shard_paths(shards), shards, out)
    except (ValueError, OSError, ImportError) as error:
        print(f"headrace index: {error}", file=sys.stderr)
        return 1


def _write(paths: list[str], shards: str, out: Path) -> int:
    """Writes the joined index, whole or not at all."""
    if not paths:
        print(f"headrace index: {shards} has no tar shards", file=sys.stderr)
        return 2
    names = [path.partition("?")[0].rpartition("/")[2] for path in paths]
    if len(set(names)) < len(names):
        raise ValueError("two shards of different folders have one name: write a joined index for each folder")
    if is_url(paths[0]):
        files = remote_shards(paths, Access())
        indexes = remote_indexes(files, None, adopt=False)
        stamps = files.stamps or []
    else:
        indexes = [index_of(path, None) for path in paths]
        stamps = [Stamp(int(one.stamp[0]), "") for one in indexes]
    unfinished = out.with_name(out.name + ".unfinished")
    unfinished.write_bytes(packed(names, stamps, indexes))
    unfinished.replace(out)
    samples = sum(len(one.key_offsets) for one in indexes)
    print(f"{samples:,} samples in {len(paths)} shards: {out}, {out.stat().st_size:,} bytes")
    return 0


def _join(folder: Path) -> int:
    manifest, missing = join(folder)
    terms = manifest.terms
    if missing:
        names = ", ".join(terms.name_of(shard) for shard in missing[:10]) + (", ..." if len(missing) > 10 else "")
        said = f"{len(missing)} of {terms.shards} shards are missing or damaged: {names}"
        print(f"headrace index: {said}", file=sys.stderr)
        return 1
    print(f"{terms.samples:,} samples in {terms.shards} shards: {folder}")
    return 0


def _index(folder: Path) -> int:
    shards = sorted(folder.glob("*.tar"))
    if not shards:
        print(f"headrace index: {folder} has neither {NAME} nor tar shards", file=sys.stderr)
        return 2
    samples = sum(len(index_of(str(path), None).key_offsets) for path in shards)
    print(f"{samples:,} samples in {len(shards)} shards: {folder}")
    return 0
