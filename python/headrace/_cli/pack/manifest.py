"""The files that describe a pack: ``pack.json``, and a record of each finished shard until all are there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from headrace._base.private_files import create_file, read_own
from headrace._cli.pack.conversion import RAW, Conversion

NAME = "pack.json"
IMAGES, LABELS = "images.npy", "labels.npy"  # of a raw pack
_FORMAT, _VERSION = "headrace pack", 1


@dataclass(frozen=True)
class Terms:
    """What a pack is made of and how; two runs with the same terms write the same bytes.

    Attributes:
        source: the fingerprint of the source.
        samples, shards: their numbers.
        upright: whether the source turns images as their EXIF orientation says.
        label: the extension of the labels; None: there are none, or they are members of the source's shards.
        shard_size: requested size of a shard in bytes, approximate; a shard of a raw pack is some rows of its array.
        conversion: how images are stored.
    """

    source: str
    samples: int
    shards: int
    upright: bool
    label: str | None
    shard_size: int
    conversion: Conversion

    def range_of(self, shard: int) -> range:
        """Returns the samples of a shard."""
        return range(shard * self.samples // self.shards, (shard + 1) * self.samples // self.shards)

    def name_of(self, shard: int) -> str:
        return f"shard-{shard:06}" if self.conversion.kind == RAW else f"shard-{shard:06}.tar"

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


@dataclass
class Record:
    """A finished shard.

    Attributes:
        terms: the digest of the pack's terms.
        samples, size: their number, and the shard's bytes.
        sha256: of the shard.
        stamp: size and time of modification in ns when it was finished.
        images_before, images_after: bytes of its images in the source and in the shard.
        kept: reason -> number of images that are stored as they were.
        video: of videos: frames that were compared, frames of clips and those decoded for them, PSNR.
    """

    terms: str
    samples: int = 0
    size: int = 0
    sha256: str = ""
    stamp: list[int] = field(default_factory=list)
    images_before: int = 0
    images_after: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    video: dict[str, float] = field(default_factory=dict)


@dataclass
class Manifest:
    """What ``pack.json`` holds: the terms, and the records of all shards once all are there."""

    terms: Terms
    shards: list[Record] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return len(self.shards) == self.terms.shards


def load_manifest(folder: Path) -> Manifest | None:
    """Returns a folder's manifest, None if there is none.

    Raises:
        ValueError: the file is damaged or of another version.
    """
    path = folder / NAME
    try:
        held = json.loads(read_own(path, follow=True))
        if held["format"] != _FORMAT or held["version"] != _VERSION:
            raise ValueError(f"it is {held['format']} of version {held['version']}")
        terms = Terms(**{**held["terms"], "conversion": Conversion(**held["terms"]["conversion"])})
        return Manifest(terms, [Record(**one) for one in held["shards"]])
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no description of a pack that this version reads: {error}") from error


def require_manifest(folder: Path) -> Manifest:
    """Returns a folder's manifest. Raises ValueError if there is none that this version reads."""
    manifest = load_manifest(folder)
    if manifest is None:
        raise ValueError(f"{folder} has no {NAME}: it holds no pack")
    return manifest


def store_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes ``pack.json``, whole or not at all."""
    held = {"format": _FORMAT, "version": _VERSION, **asdict(manifest)}
    write_whole(folder / NAME, json.dumps(held, indent=1).encode())


def record_path(shard: Path) -> Path:
    return shard.with_name(f"{shard.name}.json")


def load_record(shard: Path) -> Record | None:
    """Returns the record of a shard; None if there is none, or if it is damaged."""
    try:
        held = json.loads(read_own(record_path(shard)))
        return Record(**{one.name: held[one.name] for one in fields(Record)})
    except (OSError, KeyError, TypeError, ValueError):
        return None


def store_record(shard: Path, record: Record) -> None:
    write_whole(record_path(shard), json.dumps(asdict(record)).encode())


def manifest_part_of(path: Path) -> Path:
    """Returns the name of a file that several runs and processes write parts of."""
    return path.with_name(f"{path.name}.part")


def name_unfinished(path: Path) -> Path:
    """Returns the name under which a file is written before it is complete."""
    return path.with_name(f"{path.name}.unfinished-{os.getpid()}-{os.urandom(4).hex()}")


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that appears whole or not at all, also after a power failure."""
    made = name_unfinished(path)
    try:
        with create_file(made, 0o666) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        rename_finished(made, path)
    finally:
        made.unlink(missing_ok=True)


def rename_finished(made: Path, path: Path) -> None:
    """Gives a written and synchronised file its name."""
    made.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def add_counts(ours: dict[str, float], more: Mapping[str, float]) -> None:
    """Adds the counts of a video, or of a shard, to those of others."""
    for name, value in more.items():
        if name.startswith("least_"):
            ours[name] = min(ours.get(name, value), value)
        else:
            ours[name] = ours.get(name, 0) + value


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def describe_terms(terms: Terms) -> dict[str, object]:
    """Returns the terms by the words of the command line, for messages."""
    held = asdict(terms)
    return {**held.pop("conversion"), **held}
