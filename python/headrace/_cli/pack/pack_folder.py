"""The folder of a pack: begun, found again, refused, or emptied."""

from __future__ import annotations

from pathlib import Path

from headrace._cli.pack.conversion import RAW
from headrace._cli.pack.manifest import (
    IMAGES,
    LABELS,
    NAME,
    Manifest,
    Terms,
    describe_terms,
    load_manifest,
    manifest_part_of,
    record_path,
    store_manifest,
)


def begin_pack(folder: Path, terms: Terms, overwrite: bool) -> Manifest:
    """Returns the description of the pack in a folder; of a new one if there is none.

    Args:
        folder: it is made if it does not exist.
        terms: those that the pack has to have.
        overwrite: whether another pack is removed.

    Raises:
        ValueError: the folder holds a pack with other terms, or what is no pack.
        OSError: it cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (known := _find_manifest(folder, terms, overwrite)) is None:
        store_manifest(folder, known := Manifest(terms))
    return known


def _find_manifest(folder: Path, terms: Terms, overwrite: bool) -> Manifest | None:
    known = load_manifest(folder)
    if known is None:
        if held := next(folder.iterdir(), None):
            raise ValueError(f"{folder} holds {held.name} and no {NAME}; give a folder that is empty or does not exist")
        return None
    if overwrite:
        _remove_pack(folder, known)
        return None
    ours, theirs = describe_terms(terms), describe_terms(known.terms)
    if differing := [name for name in ours if ours[name] != theirs[name]]:
        what = ", ".join(f"{name} {theirs[name]} instead of {ours[name]}" for name in differing)
        raise ValueError(
            f"{folder} holds a pack with other terms ({what}); give another folder, or --overwrite to remove that pack"
        )
    return known


def _remove_pack(folder: Path, manifest: Manifest) -> None:
    """Removes the files of a pack, and no others; its description last, so that it can be repeated."""
    for shard in range(manifest.terms.shards):
        path = folder / manifest.terms.name_of(shard)
        for one in (path, record_path(path), Path(f"{path}.index.npz")):
            one.unlink(missing_ok=True)
    if manifest.terms.conversion.kind == RAW:
        for one in (folder / IMAGES, manifest_part_of(folder / IMAGES), folder / LABELS):
            one.unlink(missing_ok=True)
    (folder / NAME).unlink()
