"""Completes a pack whose shards several machines wrote: checks that all are there, and moves their records into
``pack.json``; no shard is rewritten."""

from __future__ import annotations

from pathlib import Path

from headrace._cli.pack.conversion import RAW
from headrace._cli.pack.manifest import (
    Manifest,
    Record,
    load_manifest,
    load_record,
    record_path,
    require_manifest,
    sha256_of,
    store_manifest,
    store_record,
)
from headrace._storage.parts.file_reads import stamp_of
from headrace.datasets.tar_shards.tar_index import index_of


def join_manifests(folder: Path) -> tuple[Manifest, list[int]]:
    """Completes the description of a pack, and the indexes beside its shards.

    Returns:
        The description, and the shards that are missing or are not what was recorded. With such, nothing is written.

    Raises:
        ValueError: the folder holds no pack.
        OSError: a shard cannot be read, or a file cannot be written.
    """
    manifest = require_manifest(folder)
    if manifest.terms.conversion.kind == RAW:
        raise ValueError(f"{folder} holds a raw pack, which has no shards to join")
    found = [find_finished(folder, manifest, shard) for shard in range(manifest.terms.shards)]
    if missing := [shard for shard, record in enumerate(found) if record is None]:
        again = load_manifest(folder)  # another machine may have joined them meanwhile, and removed the records
        return (again, []) if again is not None and again.complete and not manifest.complete else (manifest, missing)
    records = [record for record in found if record is not None]
    for shard, record in enumerate(records):
        path = folder / manifest.terms.name_of(shard)
        index_of(str(path), None)
        record.stamp = list(stamp_of(path.stat()))  # another one if the shard was copied
    joined = Manifest(manifest.terms, records)
    if joined != load_manifest(folder):
        store_manifest(folder, joined)
    for shard in range(manifest.terms.shards):
        record_path(folder / manifest.terms.name_of(shard)).unlink(missing_ok=True)
    return joined, []


def mark_incomplete(folder: Path, manifest: Manifest) -> Manifest:
    """Makes a complete pack one in the making again, because shards of it were lost."""
    for shard, record in enumerate(manifest.shards):
        store_record(folder / manifest.terms.name_of(shard), record)
    store_manifest(folder, opened := Manifest(manifest.terms))
    return opened


def find_finished(folder: Path, manifest: Manifest, shard: int) -> Record | None:
    """Returns the record of a shard whose file is what the record says; None if it has to be written."""
    path = folder / manifest.terms.name_of(shard)
    record = manifest.shards[shard] if manifest.complete else load_record(path)
    if record is None or record.terms != manifest.terms.digest() or not _shard_fits_record(path, record):
        return None
    return record


def _shard_fits_record(path: Path, record: Record) -> bool:
    """Whether a shard is the one that was recorded: by size and time, or, after it was copied, by its bytes."""
    try:
        stamp = list(stamp_of(path.stat()))
    except OSError:
        return False
    return stamp == record.stamp or (stamp[0] == record.size and sha256_of(path) == record.sha256)
