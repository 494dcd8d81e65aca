"""Packs a source as tar shards or an array, and prints what became of its images."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tqdm import tqdm  # type: ignore[import-untyped]

from headrace._base.cores import usable_cores
from headrace._cli.pack.array_pack import pack_raw
from headrace._cli.pack.conversion import COPY, RAW, Conversion
from headrace._cli.pack.job_processes import run as run_jobs
from headrace._cli.pack.manifest import IMAGES, LABELS
from headrace._cli.pack.packer import Packed, Share, pack
from headrace._cli.pack.ray_tasks import run_with_ray
from headrace._cli.pack.tar_contents import contents_of
from headrace.datasets.opening.dataset_opening import opened
from headrace.datasets.sources import as_counted
from headrace.datasets.sources.dataset import BlobDataset

_MOST_REASONS = 10  # that are printed


def run(
    source: str,
    folder: Path,
    conversion: Conversion,
    shard_size: int,
    share: tuple[int, int],
    workers: int | None,
    with_ray: bool,
    overwrite: bool,
) -> int:
    """Packs a source.

    Args:
        source: what `opened` takes.
        folder: the folder of the pack.
        conversion: how images are stored.
        shard_size: bytes of a shard, about.
        share: (i, n): this machine writes the i-th of n shares of the shards, from 1.
        workers: number of processes; None: one for each core that this process may use.
        with_ray: whether Ray's tasks write the shards instead of processes.
        overwrite: whether another pack in the folder is removed.

    Returns:
        The exit status: 0 all is written, 1 nothing or not all is.
    """
    folder, processes = folder.absolute(), workers if workers is not None else usable_cores()
    try:
        if Path(source).is_dir() and folder.resolve().is_relative_to(Path(source).resolve()):
            raise ValueError(f"{folder} is in {source} and would be a part of the dataset; give a folder elsewhere")
        known = source_of(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about single files
            if conversion.kind == RAW:
                side = conversion.max_size or 0
                pack_raw(known, folder, side, workers=processes, overwrite=overwrite, bar=samples_bar)
                _report_raw(known, folder, side)
                return 0
            contents = contents_of(known)
            packed = pack(
                contents,
                folder,
                conversion,
                shard_size=shard_size,
                share=Share(*share),
                engine=run_with_ray if with_ray else partial(run_jobs, workers=processes),
                overwrite=overwrite,
                bar=samples_bar,
            )
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        print(f"headrace pack: {error}", file=sys.stderr)
        if folder.is_dir() and isinstance(error, (OSError, RuntimeError)):
            print("What is finished is kept; the same command goes on with the others.", file=sys.stderr)
        return 1
    _report(packed, folder, conversion, contents.keys.why_numbers)
    return 0


def source_of(text: str) -> BlobDataset:
    """Returns the source that a command line names. Its paths are absolute, so that it is the same from every folder.

    Unlike `inputs.source_of`, it does not check that there are encoded images, and leaves errors as they are.

    Raises:
        NotNative, ValueError, OSError, ImportError: see `opened` and `as_source`.
    """
    path = Path(text).expanduser()
    return as_counted(opened(str(path.absolute()) if path.exists() else text))


@contextmanager
def samples_bar(total: int, done: int) -> Iterator[Callable[[int], None]]:
    """Shows the samples that are done and the time that is left, on a terminal."""
    shown = tqdm(total=total, initial=done, desc="packing", unit="sample", leave=False, disable=not sys.stderr.isatty())
    with shown:
        yield lambda more: (shown.update(more), None)[1]


def _report_raw(source: BlobDataset, folder: Path, side: int) -> None:
    labels = f', numpy.load("{folder / LABELS}")' if source.has_targets else ""
    print(f"{len(source):,} images of {side} x {side} pixels: {folder / IMAGES}")
    print(f'Read it with headrace.ImageArray(numpy.load("{folder / IMAGES}", mmap_mode="r"){labels}).')


def _report(packed: Packed, folder: Path, conversion: Conversion, why_numbers: str | None) -> None:
    terms, records = packed.terms, packed.records
    samples = sum(record.samples for record in records.values())
    before = sum(record.images_before for record in records.values())
    after = sum(record.images_after for record in records.values())
    print(f"{samples:,} samples in {len(records)} of {terms.shards} shards ({packed.kept} of earlier runs): {folder}")
    print(f"images: {before:,} bytes in the source, {after:,} in the shards")
    kept = sum((Counter(record.kept) for record in records.values()), Counter[str]())
    if kept and conversion.kind != COPY:
        print(f"{kept.total():,} of {samples:,} images are stored as they were:")
        for reason, count in kept.most_common(_MOST_REASONS):
            print(f"  {count:,}: {reason}")
    if why_numbers is not None:
        print(f"The keys are numbers, not names: {why_numbers}.")
    if packed.missing:
        print(f"{len(packed.missing)} shards are written by others; then run: headrace index {folder}")
        return
    label = {"cls": "", None: ", label=None"}.get(terms.label, f", label={terms.label!r}")
    upright = ", upright=True" if terms.upright else ""
    print(f'Read it with headrace.TarShards("{folder}/*.tar"{label}{upright}).')
