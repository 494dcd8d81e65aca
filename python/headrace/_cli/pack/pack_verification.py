"""Compares a pack with its source: every key, label and image."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from io import BytesIO
from itertools import zip_longest
from pathlib import Path

from PIL import ExifTags, Image

from headrace._base.errors import HeadraceError
from headrace._base.native import core
from headrace._base.safe_exceptions import message_of
from headrace._cli.pack.completion import find_finished
from headrace._cli.pack.conversion import COPY, LOSSLESS
from headrace._cli.pack.job_processes import run_in_processes
from headrace._cli.pack.manifest import Manifest, Terms
from headrace._cli.pack.members import Contents, PackSample
from headrace._cli.pack.packer import Bar
from headrace._cli.pack.shard_file import convert_sample
from headrace.datasets.sources.dataset import BlobDataset

_SHOWN = 80  # characters of a value in a message


class Difference(HeadraceError, ValueError):
    """A pack is not what its source makes; the message names the sample."""


def check_terms(source: BlobDataset, terms: Terms) -> None:
    """Raises Difference if a pack was not made of this source."""
    if len(source) != terms.samples:
        raise Difference(f"the source has {len(source)} samples, the pack {terms.samples}")
    if source.fingerprint() != terms.source:
        raise Difference("the source is not the one that was packed: names, sizes or labels of its samples differ")


def check_tar_pack(
    contents: Contents, manifest: Manifest, folder: Path, *, workers: int, limit: int | None, bar: Bar
) -> int:
    """Compares a pack with its source, and returns the number of samples.

    Lossless packs have the source's pixels in Pillow; others have the bytes that packing makes again. Videos have the
    source's frames in torchcodec: all values of those whose packets were copied, number, times and sizes of those that
    were encoded again; with COPY they have the source's bytes.

    Args:
        contents: the source's samples.
        manifest, folder: the pack.
        workers: number of processes.
        limit: compare only the first samples; None: all.
        bar: shows the progress.

    Raises:
        Difference: the first one that was found.
        ValueError: a sample of the source cannot be read.
        OSError: a shard cannot be read.
    """
    terms = manifest.terms
    check_terms(contents.source, terms)
    lost = [terms.name_of(shard) for shard in range(terms.shards) if find_finished(folder, manifest, shard) is None]
    if lost:
        raise Difference(f"{len(lost)} of {terms.shards} shards are missing or damaged, first {lost[0]}")
    wanted = [shard for shard in range(terms.shards) if limit is None or terms.range_of(shard)[0] < limit]
    count = sum(len(_samples_to_check(manifest, shard, limit)) for shard in wanted)
    with bar(count, 0) as progress:
        run_in_processes(partial(_check_shard, contents, manifest, folder, limit), wanted, progress, workers)
    return count


def _samples_to_check(manifest: Manifest, shard: int, limit: int | None) -> range:
    own = manifest.terms.range_of(shard)
    return own if limit is None else range(own.start, min(own.stop, limit))


def _check_shard(
    contents: Contents,
    manifest: Manifest,
    folder: Path,
    limit: int | None,
    shard: int,
    tick: Callable[[], None],
) -> None:
    path = folder / manifest.terms.name_of(shard)
    wanted = _samples_to_check(manifest, shard, limit)
    for index, found in zip_longest(wanted, samples_of(path)):
        if index is None:
            if limit is not None:
                return
            raise Difference(f"{path} has more than {len(wanted)} samples")
        if found is None:
            raise Difference(f"{path} has less than {len(wanted)} samples")
        key, members = found
        if (why := _describe_sample_difference(contents.sample(index), key, members, manifest)) is not None:
            raise Difference(f"sample {index}, {contents.source.location(index)}, differs from {path}: {why}")
        tick()


def samples_of(path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yields the key and the members of each sample of a shard, as Python's `tarfile` reads it."""
    key: str | None = None
    members: dict[str, bytes] = {}
    with tarfile.open(path, "r|") as tar:
        for info in tar:
            split = core.split_tar_name(info.name.encode())
            own, extension = (one.decode() for one in split)
            if key is not None and own != key:
                yield key, members
                members = {}
            key = own
            file = tar.extractfile(info)
            members[extension] = b"" if file is None else file.read()
    if key is not None:
        yield key, members


def _describe_sample_difference(
    source: PackSample, key: str, members: dict[str, bytes], manifest: Manifest
) -> str | None:
    """Returns how a sample of a shard differs from its source; None: it does not."""
    how = manifest.terms.conversion
    if how.video and how.kind != COPY:
        wanted = _with_extension_of(source, members)
    elif how.video:
        wanted = source
    else:
        wanted = source if how.kind == LOSSLESS else convert_sample(source, how)
    if key != wanted.key:
        return f"the key is {key!r}, not {wanted.key!r}"
    if list(members) != list(wanted.members):
        return f"it has {', '.join(members)}, not {', '.join(wanted.members)}"
    for name, data in wanted.members.items():
        if members[name] == data:
            continue
        if name != wanted.image:
            return f"{name} is {members[name][:_SHOWN]!r}, not {data[:_SHOWN]!r}"
        if how.video:
            from headrace._cli.pack.videos.video_conversion import video_difference  # imports PyAV

            if (why := video_difference(data, members[name], how)) is not None:
                return why
            continue
        if how.kind != LOSSLESS:
            return "the image has other bytes than those that packing makes"
        if (why := _pixel_difference(data, members[name])) is not None:
            return why
    return None


def _with_extension_of(source: PackSample, members: Mapping[str, bytes]) -> PackSample:
    """Returns a sample of the source whose video has the extension of a container that packing may make."""
    from headrace._cli.pack.videos.video_conversion import MADE

    made = next((name for name in members if name in MADE and name not in source.members), source.image)
    renamed = {made if name == source.image else name: data for name, data in source.members.items()}
    return PackSample(source.key, renamed, made)


def _pixel_difference(source: bytes, packed: bytes) -> str | None:
    try:
        wanted = _decode_image(source)
    except Exception as error:  # Pillow raises many types for a broken file
        return f"the image cannot be decoded ({message_of(error)}), so its bytes should have been kept"
    try:
        found = _decode_image(packed)
    except Exception as error:
        return f"the packed image cannot be decoded: {message_of(error)}"
    return next((f"the images differ in {name}" for name in wanted if wanted[name] != found[name]), None)


def _decode_image(data: bytes) -> dict[str, object]:
    """Returns all that a reader may use to show an image."""
    with Image.open(BytesIO(data)) as image:
        image.load()
        return {
            "mode": image.mode,
            "size": image.size,
            "pixels": image.tobytes(),
            "EXIF orientation": image.getexif().get(ExifTags.Base.Orientation),
            "ICC profile": image.info.get("icc_profile"),
        }
