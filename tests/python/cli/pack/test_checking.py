"""Checking a pack: each kind of difference is found and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packs import checked, members, packed, write_tar

from headrace import EncodedImages
from headrace._cli.pack.conversion import COPY, LOSSLESS, SMALLER, Conversion
from headrace._cli.pack.manifest import require_manifest, sha256_of, store_manifest
from headrace._cli.pack.pack_verification import Difference
from headrace._storage.parts.file_reads import stamp_of
from support import pictures, truncated

COUNT = 6
Parts = list[tuple[str, bytes]]
Change = Callable[[Parts], Parts]


def source(**options: Any) -> EncodedImages:
    return EncodedImages(pictures(COUNT), [10 * i for i in range(COUNT)], **options)


def altered(folder: Path, change: Change) -> None:
    """Writes a pack's only shard again, with other members and a description that fits it."""
    (shard,) = folder.glob("*.tar")
    parts = change(members(folder))
    write_tar(shard, parts)
    manifest = require_manifest(folder)
    record = manifest.shards[0]
    record.size, record.stamp, record.sha256 = shard.stat().st_size, list(stamp_of(shard.stat())), sha256_of(shard)
    store_manifest(folder, manifest)


def replaced(place: int, name: str | None = None, data: bytes | None = None) -> Change:
    def change(parts: Parts) -> Parts:
        old = parts[place]
        return [*parts[:place], (name or old[0], old[1] if data is None else data), *parts[place + 1 :]]

    return change


CHANGES: dict[str, tuple[Change, str]] = {
    "key": (replaced(0, "other.jpg"), "sample 0, blob 0 in memory, .* the key is 'other', not '000000'"),
    "image": (replaced(2, data=pictures(1)[0]), r"sample 1, .*: the images? "),
    "broken image": (replaced(4, data=truncated(pictures(5)[2])), r"sample 2, .*: the (packed )?image "),
    "label": (replaced(3, data=b"11"), r"sample 1, .*: cls is b'11', not b'10'"),
    "extension": (replaced(3, name="000001.txt"), r"sample 1, .*: it has jpg, txt, not jpg, cls"),
    "lost member": (lambda parts: parts[:3] + parts[4:], r"sample 1, .*: it has jpg, not jpg, cls"),
    "lost sample": (lambda parts: parts[:-2], r"has less than 6 samples"),
    "added sample": (lambda parts: [*parts, ("x.jpg", b"")], r"has more than 6 samples"),
}


@pytest.mark.parametrize("how", [Conversion(COPY), Conversion(LOSSLESS), Conversion(SMALLER, 60)])
@pytest.mark.parametrize("kind", CHANGES)
def test_differences_are_named(kind: str, how: Conversion, tmp_path: Path) -> None:
    packed(source(), tmp_path, how, shard_size=10**9)
    assert checked(source(), tmp_path) == COUNT
    change, message = CHANGES[kind]
    altered(tmp_path, change)
    with pytest.raises(Difference, match=message):
        checked(source(), tmp_path)


def test_only_the_first_samples_are_compared(tmp_path: Path) -> None:
    packed(source(), tmp_path, shard_size=10**9)
    altered(tmp_path, replaced(7, data=b"1"))  # the label of sample 3
    assert checked(source(), tmp_path, limit=3) == 3
    with pytest.raises(Difference, match="sample 3"):
        checked(source(), tmp_path, limit=4)


def test_lossless_packs_may_have_other_bytes_but_no_other_pixels(tmp_path: Path) -> None:
    packed(source(), tmp_path, LOSSLESS, shard_size=10**9)
    assert members(tmp_path)[0][1] != pictures(1)[0]
    altered(tmp_path, replaced(0, data=pictures(1)[0]))
    assert checked(source(), tmp_path) == COUNT


def test_damaged_shards_and_other_sources_differ(tmp_path: Path) -> None:
    packed(source(), tmp_path)
    with pytest.raises(Difference, match="the source has 5 samples, the pack 6"):
        checked(EncodedImages(pictures(5), range(5)), tmp_path)
    with pytest.raises(Difference, match="the source is not the one that was packed"):
        checked(EncodedImages(pictures(COUNT), range(COUNT)), tmp_path)
    shard = tmp_path / "shard-000000.tar"
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    with pytest.raises(Difference, match=r"1 of \d shards are missing or damaged, first shard-000000\.tar"):
        checked(source(), tmp_path)
    with pytest.raises(ValueError, match="holds no pack"):
        checked(source(), tmp_path.parent)
