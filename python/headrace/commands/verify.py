"""Compares every image of a folder, through the usual recipes, with Pillow and torch, bit for bit."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from tqdm import tqdm  # type: ignore[import-untyped]

from headrace import DataLoader, ImageFiles, VerificationError, transforms
from headrace.demo import recipes
from headrace.errors import SampleError
from headrace.sources.image_folder import EXTENSIONS

_CHUNK = 256  # files a step of the progress bar
_RECIPES: dict[str, Callable[[], transforms.Compose]] = {"train": recipes.train, "eval": recipes.evaluation}


def run(folder: Path, names: list[str], workers: int | None, limit: int | None) -> int:
    """Prints what was compared and which files cannot be read.

    Args:
        folder: searched for images, sub-folders too.
        names: of the recipes, ``"train"`` and ``"eval"``.
        workers: threads; None: as many as this process may run on.
        limit: so many files at most; None: all.

    Returns:
        The exit status: 0 all equal, 1 something differs, 2 nothing to compare.
    """
    paths = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS and path.is_file())
    if not paths:
        print(f"headrace verify: no images below {folder}", file=sys.stderr)
        return 2
    threads = workers if workers is not None else len(os.sched_getaffinity(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files: twice each, and they drown the result
        return _report(paths[:limit], names, threads)


def _report(paths: list[str], names: list[str], threads: int) -> int:
    errors: list[SampleError] = []
    for name in names:
        samples = size = 0
        errors = []
        with tqdm(total=len(paths), desc=name, unit="file", leave=False, disable=not sys.stderr.isatty()) as bar:
            for chunk in _chunks(paths):
                try:
                    more_samples, more_bytes, failed = _compare(chunk, _RECIPES[name](), threads)
                except VerificationError as error:
                    print(f"{name}: differs: {error}")
                    return 1
                samples, size = samples + more_samples, size + more_bytes
                errors += failed
                bar.update(len(chunk))
        print(f"{name}: {samples} images, {size:,} bytes compared with Pillow and torch: 0 differ")
    _tell(errors)
    return 0


def _chunks(paths: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(paths), _CHUNK):
        yield paths[first : first + _CHUNK]


def _compare(paths: list[str], transform: transforms.Compose, threads: int) -> tuple[int, int, list[SampleError]]:
    """Images, bytes, and the files that neither side can read."""
    loader = DataLoader(
        ImageFiles(paths, None, transform),
        batch_size=32,
        num_workers=threads,
        seed=0,
        on_error="skip",
        max_errors=None,
    )
    report = loader.verify(len(loader))
    if report.samples == len(paths):
        return report.samples, report.bytes, []
    return report.samples, report.bytes, _unreadable(loader)


def _unreadable(loader: DataLoader) -> list[SampleError]:
    for _ in loader:
        pass
    return loader.errors


def _tell(errors: list[SampleError]) -> None:
    if not errors:
        return
    print(f"{len(errors)} files cannot be read, here as with Pillow:")
    for error in errors:
        print(f"  {error.location}: {error.reason}")
