"""Joins the shards of a pack that several machines wrote, or indexes tar shards of any writer."""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.pack.joining import join
from headrace.pack.manifest import NAME
from headrace.shards.tar_index import index_of


def run(folder: Path) -> int:
    """Prints what was joined.

    Returns:
        The exit status: 0 all shards are there, 1 some are missing or damaged, 2 there is nothing to index.
    """
    try:
        return _join(folder) if (folder / NAME).exists() else _index(folder)
    except (ValueError, OSError) as error:
        print(f"headrace index: {error}", file=sys.stderr)
        return 1


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
