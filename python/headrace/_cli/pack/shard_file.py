"""Writes one shard: a tar archive that appears whole or not at all, its index and its record."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from headrace._base.private_files import create_file
from headrace._cli.pack.conversion import Conversion, Converted, convert_image
from headrace._cli.pack.manifest import (
    Record,
    Terms,
    add_counts,
    name_unfinished,
    record_path,
    rename_finished,
    store_record,
)
from headrace._cli.pack.members import Contents, PackSample
from headrace._storage.parts.file_reads import stamp_of
from headrace.datasets.tar_shards.tar_index import index_of

_MODE = 0o644
_JPEGS = ("jpg", "jpeg")
_END = bytes(2 * tarfile.BLOCKSIZE)  # of an archive


def write_shard(contents: Contents, terms: Terms, folder: Path, number: int, tick: Callable[[], None]) -> None:
    """Writes a shard with its index and its record.

    Args:
        tick: called after each sample.

    Raises:
        OSError: the shard cannot be written. Nothing is left of it.
        ValueError: a sample cannot be read; or the shard was read back with other samples.
    """
    target = folder / terms.name_of(number)
    for old in folder.glob(f"{target.name}*.unfinished-*"):  # of a run that was killed
        old.unlink(missing_ok=True)
    record_path(target).unlink(missing_ok=True)
    made = name_unfinished(target)
    record = Record(terms.digest())
    try:
        with create_file(made, 0o666) as file:
            digest = hashlib.sha256()
            for index in terms.range_of(number):
                for part in _tar_members(convert_sample(contents.sample(index), terms.conversion, record)):
                    digest.update(part)
                    file.write(part)
                tick()
            digest.update(_END)
            file.write(_END)
            file.flush()
            os.fsync(file.fileno())
        record.samples, record.size = len(terms.range_of(number)), made.stat().st_size
        record.sha256 = digest.hexdigest()
        rename_finished(made, target)
    except OSError as error:  # some name no file: a full disk
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        made.unlink(missing_ok=True)
    record.stamp = list(stamp_of(target.stat()))
    found = len(index_of(str(target), None).key_offsets)  # also writes the index beside the shard
    if found != record.samples:
        raise ValueError(f"{target} has {found} samples when it is read, not {record.samples}")
    store_record(target, record)


def convert_sample(sample: PackSample, how: Conversion, record: Record | None = None) -> PackSample:
    """Returns a sample as it is stored, and counts what became of its image."""
    before = sample.members[sample.image]
    made = convert_blob(before, how, sample.image)
    extension = sample.image if sample.image in _JPEGS else made.extension or sample.image
    data, kept = made.data, made.kept
    if extension != sample.image and extension in sample.members:
        extension, data, kept = sample.image, before, f"the sample has a {extension} already"
    if record is not None:
        record.images_before += len(before)
        record.images_after += len(data)
        if kept is not None:
            record.kept = dict(Counter(record.kept) + Counter([kept]))
        elif how.video:
            add_counts(record.video, made.counts)
    members = {
        extension if name == sample.image else name: data if name == sample.image else value
        for name, value in sample.members.items()
    }
    return PackSample(sample.key, members, extension)


def convert_blob(data: bytes, how: Conversion, extension: str) -> Converted:
    """Returns what is stored for an image or a video. Raises what `convert_video` does."""
    if not how.video:
        return convert_image(data, how)
    from headrace._cli.pack.videos.video_conversion import convert_video  # imports PyAV

    return convert_video(data, how, extension)


def _tar_members(sample: PackSample) -> Iterator[bytes]:
    """Yields the parts of the archive that hold a sample."""
    for extension, data in sample.members.items():
        info = tarfile.TarInfo(f"{sample.key}.{extension}")  # no time and no owner: equal runs write equal bytes
        info.size, info.mode = len(data), _MODE
        yield info.tobuf(tarfile.PAX_FORMAT)
        yield data
        yield bytes(-len(data) % tarfile.BLOCKSIZE)
