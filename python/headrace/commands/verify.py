"""Compares an image, or every image of a folder, through the usual recipes, with Pillow and torch, bit for bit."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm  # type: ignore[import-untyped]

from headrace import DataLoader, ImageFiles, VerificationError, transforms
from headrace.base.cores import usable_cores
from headrace.demo import recipes
from headrace.sources.image_folder import EXTENSIONS

_CHUNK = 256  # files a step of the progress bar
_RECIPES: dict[str, Callable[[], transforms.Compose]] = {"train": recipes.train, "eval": recipes.evaluation}


@dataclass
class _Found:
    """What there is to compare.

    Attributes:
        paths: of files, sorted.
        unreadable: path -> why, of what has an image's name and is no file.
        unsearched: folder -> why.
    """

    paths: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    unsearched: dict[str, str] = field(default_factory=dict)


def run(path: Path, names: list[str], workers: int | None, limit: int | None) -> int:
    """Prints what was compared and what cannot be read.

    Args:
        path: an image, or a folder that is searched for images, sub-folders and links to folders too.
        names: of the recipes, ``"train"`` and ``"eval"``.
        workers: threads; None: one for each core that this process may use.
        limit: so many files at most; None: all.

    Returns:
        The exit status: 0 all equal, 1 something differs or cannot be read, 2 nothing to compare.
    """
    try:
        found = _search(path)
    except OSError as error:
        why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        print(f"headrace verify: {path} {why}", file=sys.stderr)
        return 2
    for folder, why in found.unsearched.items():
        print(f"headrace verify: {folder} cannot be searched: {why}", file=sys.stderr)
    if not found.paths and not found.unreadable:
        endings = ", ".join(EXTENSIONS)
        print(f"headrace verify: no images below {path}: no file's name ends in {endings}", file=sys.stderr)
        return 2
    found.paths = found.paths[:limit]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files: twice each, and they drown the result
        return _report(found, names, workers if workers is not None else usable_cores())


def _search(path: Path) -> _Found:
    """Raises OSError for a path that is not there, or that may not be looked at."""
    found = _Found()
    folder = stat.S_ISDIR(path.stat().st_mode)
    for one in sorted(_images_below(path, found.unsearched)) if folder else [str(path)]:
        if _is_special(one):
            found.unreadable[one] = "is not a file"
        else:
            found.paths.append(one)
    return found


def _is_special(path: str) -> bool:
    """Whether it is a pipe, a device or the like, which might never end to be read."""
    try:
        return not stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:  # the loader says why
        return False


def _images_below(folder: Path, unsearched: dict[str, str]) -> Iterator[str]:
    """What is named as an image is, as in ``ImageFolder``; a folder that links lead to again is searched once."""

    def note(error: OSError) -> None:
        unsearched[str(error.filename)] = error.strerror or str(error)

    seen = set()
    for where, below, names in os.walk(folder, onerror=note, followlinks=True):
        own = Path(where).stat()
        if (own.st_dev, own.st_ino) in seen:
            below.clear()
            continue
        seen.add((own.st_dev, own.st_ino))
        yield from (str(Path(where, name)) for name in names if name.lower().endswith(EXTENSIONS))


def _report(found: _Found, names: list[str], threads: int) -> int:
    """Compares, prints; the exit status."""
    unreadable = dict(found.unreadable)
    for name in names:
        samples = size = 0
        bar = tqdm(total=len(found.paths), desc=name, unit="file", leave=False, disable=not sys.stderr.isatty())
        with bar:
            for chunk in _chunks(found.paths):
                try:
                    more_samples, more_bytes, failed = _compare(chunk, _RECIPES[name](), threads)
                except VerificationError as error:
                    print(f"{name}: differs: {error}")
                    return 1
                samples, size = samples + more_samples, size + more_bytes
                unreadable |= failed
                bar.update(len(chunk))
        differ = "0 differ" if samples else "there is nothing to compare"
        print(f"{name}: {samples} images, {size:,} bytes compared with Pillow and torch: {differ}")
    if unreadable:
        total = len(found.paths) + len(found.unreadable)
        print(f"{len(unreadable)} of {total} files cannot be read, here as with Pillow:")
    for path in sorted(unreadable):
        print(f"  {path}: {unreadable[path]}")
    return 1 if unreadable or found.unsearched else 0


def _chunks(paths: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(paths), _CHUNK):
        yield paths[first : first + _CHUNK]


def _compare(paths: list[str], transform: transforms.Compose, threads: int) -> tuple[int, int, dict[str, str]]:
    """Images, bytes, and the files that neither side can read, with the reason."""
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
        return report.samples, report.bytes, {}
    for _ in loader:
        pass
    return report.samples, report.bytes, {error.location: error.reason for error in loader.errors}
