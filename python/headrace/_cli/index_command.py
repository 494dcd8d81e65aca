"""``headrace index``: joins the shards of a pack, or indexes tar shards of any writer, in one file if asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from headrace._cli import inputs
from headrace._cli.console import results

if TYPE_CHECKING:
    from headrace.datasets.tar_shards.tar_index import TarIndex

#: The exit status, and the document of ``--json``: empty where nothing was indexed.
_Outcome: TypeAlias = tuple[int, dict[str, object]]


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    what = "join the shards of a pack, or index tar shards"
    examples = ["index packed", "index 's3://bucket/train-{000..146}.tar' --out headrace.index.npz"]
    parser = inputs.add_command(commands, "index", what, examples)
    parser.add_argument(
        "shards", metavar="DST", help="a folder of shards, or shards as TarShards takes them: {000..146}"
    )
    out = (
        "write the indexes of all shards to one file, such as headrace.index.npz beside them, so that a bucket of many "
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help=out + "shards is opened with one request")
    results.add_json_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what was joined.

    Returns:
        The exit status: 0 all shards are there, 1 some are missing or damaged, 2 there is nothing to index, or URLs
        are given without ``--out``.
    """
    with results.stdout_for_result(args) as stdout:
        status, document = _index_shards(args.shards, args.out)
        if document:
            results.write_document(document, args.json, stdout)
        return status


def _index_shards(shards: str, out: Path | None) -> _Outcome:
    from headrace._cli.pack.manifest import NAME
    from headrace._storage.remote.urls import is_url
    from headrace.datasets.tar_shards.shard_urls import shard_paths

    folder = Path(shards)
    try:
        if out is None:
            if is_url(shards):
                return _refusal_outcome("shards that are URLs need --out FILE", 2)
            return _join_indexes(folder) if (folder / NAME).exists() else _index_folder(folder)
        return _write_indexes(
            sorted(map(str, folder.glob("*.tar"))) if folder.is_dir() else shard_paths(shards), shards, out
        )
    except (ValueError, OSError, ImportError) as error:
        return _refusal_outcome(str(error), 1)


def _refusal_outcome(why: str, status: int) -> _Outcome:
    print(f"headrace index: {why}", file=sys.stderr)
    return status, {}


def _write_indexes(paths: list[str], shards: str, out: Path) -> _Outcome:
    """Writes the joined index, whole or not at all."""
    from headrace._storage.remote.clients.responses import Stamp
    from headrace._storage.remote.remote_files import Access
    from headrace._storage.remote.urls import is_url
    from headrace.datasets.tar_shards.joined_index import pack_indexes
    from headrace.datasets.tar_shards.remote_index import remote_indexes, remote_shards

    if not paths:
        return _refusal_outcome(f"{shards} has no tar shards", 2)
    names = [path.partition("?")[0].rpartition("/")[2] for path in paths]
    if len(set(names)) < len(names):
        raise ValueError("two shards of different folders have one name: write a joined index for each folder")
    if is_url(paths[0]):
        files = remote_shards(paths, Access())
        indexes = remote_indexes(files, None, adopt=False)
        stamps = files.stamps or []
    else:
        indexes = [*_make_each_index(paths)]
        stamps = [Stamp(int(one.stamp[0]), "") for one in indexes]
    unfinished = out.with_name(out.name + ".unfinished")
    unfinished.write_bytes(pack_indexes(names, stamps, indexes))
    unfinished.replace(out)
    samples = sum(len(one.key_offsets) for one in indexes)
    print(f"{samples:,} samples in {len(paths)} shards: {out}, {out.stat().st_size:,} bytes")
    return 0, _json_document(samples, len(paths), [], out)


def _join_indexes(folder: Path) -> _Outcome:
    from headrace._cli.pack.completion import join_manifests

    manifest, missing = join_manifests(folder)
    terms = manifest.terms
    if missing:
        names = ", ".join(terms.name_of(shard) for shard in missing[:10]) + (", ..." if len(missing) > 10 else "")
        said = f"{len(missing)} of {terms.shards} shards are missing or damaged: {names}"
        print(f"headrace index: {said}", file=sys.stderr)
        return 1, _json_document(terms.samples, terms.shards, [terms.name_of(shard) for shard in missing], folder)
    print(f"{terms.samples:,} samples in {terms.shards} shards: {folder}")
    return 0, _json_document(terms.samples, terms.shards, [], folder)


def _index_folder(folder: Path) -> _Outcome:
    from headrace._cli.pack.manifest import NAME

    shards = sorted(folder.glob("*.tar"))
    if not shards:
        return _refusal_outcome(f"{folder} has neither {NAME} nor tar shards", 2)
    samples = sum(len(one.key_offsets) for one in _make_each_index(list(map(str, shards))))
    print(f"{samples:,} samples in {len(shards)} shards: {folder}")
    return 0, _json_document(samples, len(shards), [], folder)


def _make_each_index(paths: Sequence[str]) -> Iterator[TarIndex]:
    from headrace._cli.console.progress import Progress
    from headrace.datasets.tar_shards.tar_index import index_of

    with Progress("index", len(paths), "shard") as bar:
        for path in paths:
            yield index_of(path, None)
            bar.update()


def _json_document(samples: int, shards: int, missing: list[str], written: Path) -> dict[str, object]:
    return {"samples": samples, "shards": shards, "missing": missing, "path": str(written)}
