"""Compares a raw pack with its source: every row and label."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from headrace._cli.pack.array_pack import labels_of, make_pixel_row, manifest_fits
from headrace._cli.pack.job_processes import run_in_processes
from headrace._cli.pack.manifest import IMAGES, LABELS, Manifest
from headrace._cli.pack.pack_verification import Difference, check_terms
from headrace._cli.pack.packer import Bar
from headrace.datasets.sources.dataset import BlobDataset


def check_raw(
    source: BlobDataset, manifest: Manifest, folder: Path, *, workers: int, limit: int | None, bar: Bar
) -> int:
    """Compares an array and its labels with what packing makes again, and returns the number of samples.

    Args:
        source: what was packed.
        manifest, folder: the pack.
        workers: number of processes.
        limit: compare only the first samples; None: all.
        bar: shows the progress.

    Raises:
        Difference: the first one that was found.
        OSError: a file cannot be read.
    """
    terms = manifest.terms
    check_terms(source, terms)
    if not manifest.complete or not manifest_fits(folder, manifest):
        raise Difference(f"{folder / IMAGES} is not complete, or it was changed")
    wanted = labels_of(source)
    if (wanted is not None) != (folder / LABELS).exists():
        raise Difference(f"{folder / LABELS} is missing" if wanted is not None else "the source has no labels")
    if wanted is not None and not np.array_equal(found := np.load(folder / LABELS), wanted):
        same = len(found) == len(wanted)
        where = f"label {int(np.flatnonzero(found != wanted)[0])}" if same else "their number"
        raise Difference(f"{folder / LABELS} differs from the source: {where}")
    count = terms.samples if limit is None else min(limit, terms.samples)
    shards = [shard for shard in range(terms.shards) if terms.range_of(shard).start < count]
    with bar(count, 0) as progress:
        run_in_processes(partial(_check_rows, source, manifest, folder, count), shards, progress, workers)
    return count


def _check_rows(
    source: BlobDataset, manifest: Manifest, folder: Path, count: int, shard: int, tick: Callable[[], None]
) -> None:
    images = np.load(folder / IMAGES, mmap_mode="r")
    for index in manifest.terms.range_of(shard):
        if index >= count:
            return
        if images[index].tobytes() != make_pixel_row(source, index, images.shape[1]):
            raise Difference(f"sample {index}, {source.location(index)}, differs from row {index} of {folder / IMAGES}")
        tick()
