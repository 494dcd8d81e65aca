"""``headrace index``: joins the shards of a pack, or indexes tar shards of any writer, in one file if asked."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from headrace._cli import inputs


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("index", help="join the shards of a pack, or index tar shards")
    parser.add_argument(
        "shards", metavar="DST", help="a folder of shards, or shards as TarShards takes them: {000..146}"
    )
    out = (
        "write the indexes of all shards to one file, such as headrace.index.npz beside them, so that a bucket of many "
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help=out + "shards is opened with one request")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what was joined.

    Returns:
        The exit status: 0 all shards are there, 1 some are missing or damaged, 2 there is nothing to index, or URLs
        are given without ``--out``.
    """
    from headrace._cli.pack.manifest import NAME
    from headrace._storage.remote.urls import is_url
    from headrace.datasets.tar_shards.shard_urls import shard_paths

    shards, out = args.shards, args.out
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
    from headrace._storage.remote.clients.responses import Stamp
    from headrace._storage.remote.remote_files import Access
    from headrace._storage.remote.urls import is_url
    from headrace.datasets.tar_shards.joined_index import pack_indexes
    from headrace.datasets.tar_shards.remote_index import remote_indexes, remote_shards
    from headrace.datasets.tar_shards.tar_index import index_of

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
    unfinished.write_bytes(pack_indexes(names, stamps, indexes))
    unfinished.replace(out)
    samples = sum(len(one.key_offsets) for one in indexes)
    print(f"{samples:,} samples in {len(paths)} shards: {out}, {out.stat().st_size:,} bytes")
    return 0


def _join(folder: Path) -> int:
    from headrace._cli.pack.completion import join

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
    from headrace._cli.pack.manifest import NAME
    from headrace.datasets.tar_shards.tar_index import index_of

    shards = sorted(folder.glob("*.tar"))
    if not shards:
        print(f"headrace index: {folder} has neither {NAME} nor tar shards", file=sys.stderr)
        return 2
    samples = sum(len(index_of(str(path), None).key_offsets) for path in shards)
    print(f"{samples:,} samples in {len(shards)} shards: {folder}")
    return 0
