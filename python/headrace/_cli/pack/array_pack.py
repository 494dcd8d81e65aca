"""Packs a source as one array of decoded images of one size, and its labels as another."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._base.safe_exceptions import message_of
from headrace._cli.pack.conversion import RAW, Conversion, square_pixels
from headrace._cli.pack.job_processes import run_in_processes
from headrace._cli.pack.manifest import (
    IMAGES,
    LABELS,
    Manifest,
    Record,
    Terms,
    load_record,
    manifest_part_of,
    record_path,
    rename_finished,
    store_manifest,
    store_record,
    write_whole,
)
from headrace._cli.pack.pack_folder import begin_pack
from headrace._cli.pack.packer import Bar, Packed
from headrace._storage.parts.file_reads import stamp_of
from headrace.datasets.sources.dataset import BlobDataset

_SHARD = 1 << 26  # bytes of rows that are recorded, and perhaps repeated, together


def pack_raw(source: BlobDataset, folder: Path, side: int, *, workers: int, overwrite: bool, bar: Bar) -> Packed:
    """Writes ``images.npy``, uint8 (n, side, side, 3), and ``labels.npy``, int64 (n,), if the source has labels.

    The images are those of the source, in its order, through torchvision's ``Resize(side)`` and ``CenterCrop(side)``.

    Args:
        source: RGB images, encoded or not.
        folder: the folder of the files. It is made, or is empty, or holds this pack.
        side: height and width in pixels.
        workers: number of processes.
        overwrite: whether another pack in the folder is removed.
        bar: shows the progress.

    Raises:
        ValueError: the folder holds something else; an image cannot be decoded; the labels are no whole numbers.
        OSError: a file cannot be written; finished rows stay.
    """
    if not len(source) or source.channels != 3:
        raise ValueError(f"{source!r} has no RGB images, which raw packs hold")
    labels = labels_of(source)
    terms = raw_terms(source, side)
    manifest = begin_pack(folder, terms, overwrite)
    if manifest.complete and manifest_fits(folder, manifest):
        return Packed(terms, terms.shards, dict(enumerate(manifest.shards)))
    if manifest.complete:
        raise ValueError(f"{folder / IMAGES} was changed or removed; pack it again with --overwrite")
    part, begin = manifest_part_of(folder / IMAGES), _allocate_array_file(folder, terms)
    wanted = [shard for shard in range(terms.shards) if not _is_written(part, begin, terms, shard)]
    left = sum(len(terms.range_of(shard)) for shard in wanted)
    with bar(terms.samples, terms.samples - left) as progress:
        run_in_processes(partial(_write_rows, source, terms, part, begin), wanted, progress, workers)
    if labels is not None:
        out = BytesIO()
        np.save(out, labels)
        write_whole(folder / LABELS, out.getvalue())
    rename_finished(part, folder / IMAGES)
    names = [part.with_name(terms.name_of(shard)) for shard in range(terms.shards)]
    records = [record for name in names if (record := load_record(name)) is not None]
    for record in records:
        record.stamp = list(stamp_of((folder / IMAGES).stat()))
    store_manifest(folder, Manifest(terms, records))
    for name in names:
        record_path(name).unlink(missing_ok=True)
    return Packed(terms, terms.shards - len(wanted), dict(enumerate(records)))


def raw_terms(source: BlobDataset, side: int) -> Terms:
    shards = max(1, -(-len(source) * _row_bytes(side) // _SHARD))
    conversion = Conversion(RAW, side)
    return Terms(source.fingerprint(), len(source), min(len(source), shards), source.upright, None, _SHARD, conversion)


def labels_of(source: BlobDataset) -> npt.NDArray[np.int64] | None:
    """Returns the labels of all samples, int64 (n,); None if there are none.

    Raises:
        ValueError: they are no whole numbers.
    """
    if not source.has_targets:
        return None
    every = np.arange(len(source))
    if (numbers := source.numbers(every)) is not None:
        return numbers
    labels = [source.target(index) for index in every.tolist()]
    for index, label in enumerate(labels):
        if not isinstance(label, (int, np.integer)) or isinstance(label, bool):
            raise ValueError(
                f"the label of sample {index} is {type(label).__name__}; raw packs hold whole numbers: pack as shards, "
                "or leave the labels out"
            )
    return np.array(labels, np.int64)


def manifest_fits(folder: Path, manifest: Manifest) -> bool:
    """Whether the array is the one that was written, by size and time or by its bytes."""
    terms, path = manifest.terms, folder / IMAGES
    try:
        stamp = list(stamp_of(path.stat()))
    except OSError:
        return False
    begin = len(_npy_header(terms))
    if stamp[0] != begin + terms.samples * _row_bytes(terms.conversion.max_size or 0):
        return False
    return all(
        record.stamp == stamp or _sha256_of_rows(path, begin, terms, shard) == record.sha256
        for shard, record in enumerate(manifest.shards)
    )


def make_pixel_row(source: BlobDataset, index: int, side: int) -> bytes:
    """Returns the bytes of a row. Raises ValueError if the image cannot be decoded."""
    try:
        return square_pixels(source.image(index), side)
    except Exception as error:  # Pillow raises many types for a broken file
        raise ValueError(
            f"sample {index}, {source.location(index)}, cannot be decoded: {message_of(error)}; leave it out of the "
            "source, or pack it as shards, which keep such files"
        ) from error


def _row_bytes(side: int) -> int:
    return side * side * 3


def _npy_header(terms: Terms) -> bytes:
    side, out = terms.conversion.max_size or 0, BytesIO()
    shape = (terms.samples, side, side, 3)
    np.lib.format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return out.getvalue()


def _allocate_array_file(folder: Path, terms: Terms) -> int:
    """Makes the file with all its space, and returns where its rows begin."""
    header, path = _npy_header(terms), manifest_part_of(folder / IMAGES)
    is_new = not path.exists()
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        size = len(header) + terms.samples * _row_bytes(terms.conversion.max_size or 0)
        os.ftruncate(file, size)
        os.posix_fallocate(file, 0, size)
        os.pwrite(file, header, 0)
    except OSError as error:
        if is_new:
            path.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(file)
    return len(header)


def _write_rows(
    source: BlobDataset, terms: Terms, path: Path, begin: int, shard: int, tick: Callable[[], None]
) -> None:
    side, rows, digest = terms.conversion.max_size or 0, terms.range_of(shard), hashlib.sha256()
    with path.open("r+b") as file:
        file.seek(begin + rows.start * _row_bytes(side))
        for index in rows:
            row = make_pixel_row(source, index, side)
            digest.update(row)
            file.write(row)
            tick()
        file.flush()
        os.fsync(file.fileno())
    size = len(rows) * _row_bytes(side)
    record = Record(terms.digest(), len(rows), size, digest.hexdigest(), images_after=size)
    store_record(path.with_name(terms.name_of(shard)), record)


def _is_written(path: Path, begin: int, terms: Terms, shard: int) -> bool:
    record = load_record(path.with_name(terms.name_of(shard)))
    return (
        record is not None
        and record.terms == terms.digest()
        and _sha256_of_rows(path, begin, terms, shard) == record.sha256
    )


def _sha256_of_rows(path: Path, begin: int, terms: Terms, shard: int) -> str:
    row, rows = _row_bytes(terms.conversion.max_size or 0), terms.range_of(shard)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(begin + rows.start * row)
        for _ in rows:
            digest.update(file.read(row))
    return digest.hexdigest()
