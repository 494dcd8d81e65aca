"""Compares an image, or all images of a folder, with Pillow and torch bit for bit, through two common recipes."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm  # type: ignore[import-untyped]

from headrace import transforms
from headrace._base.cores import usable_cores
from headrace._base.errors import VerificationError
from headrace._cli.demo import recipes
from headrace.datasets.sources import ImageFiles
from headrace.datasets.sources.image_folder import EXTENSIONS
from headrace.loader import DataLoader

_CHUNK = 256  # files per step of the progress bar
_RECIPES: dict[str, Callable[[], transforms.Compose]] = {"train": recipes.train, "eval": recipes.evaluation}


@dataclass
class _Found:
    """Result of the search for images.

    Attributes:
        paths: paths of the files, sorted.
        unreadable: path -> reason, for entries with an image's name that are not regular files.
        unsearched: folder -> reason, for folders that could not be searched.
    """

    paths: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    unsearched: dict[str, str] = field(default_factory=dict)


def run(path: Path, names: list[str], workers: int | None, limit: int | None) -> int:
    """Prints what was compared and which files cannot be read.

    Args:
        path: an image, or a folder to search for images, including sub-folders and links to folders.
        names: names of the recipes, ``"train"`` and ``"eval"``.
        workers: number of threads; None: one for each core that this process may use.
        limit: maximum number of files; None: all.

    Returns:
        The exit status: 0 all images are equal, 1 an image differs or cannot be read, 2 there is nothing to compare.
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
        print(f"headrace verify: no images in {path}: no file name ends in {endings}", file=sys.stderr)
        return 2
    found.paths = found.paths[:limit]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's warnings about single files come twice each and hide the result
        return _report(found, names, workers if workers is not None else usable_cores())


def _search(path: Path) -> _Found:
    """Returns the images at `path`. Raises OSError if the path does not exist or cannot be accessed."""
    found = _Found()
    folder = stat.S_ISDIR(path.stat().st_mode)
    for one in sorted(_images_below(path, found.unsearched)) if folder else [str(path)]:
        if _is_special(one):
            found.unreadable[one] = "is not a file"
        else:
            found.paths.append(one)
    return found


def _is_special(path: str) -> bool:
    """Returns whether `path` is a pipe, a device or the like, because reading it might never end."""
    try:
        return not stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:  # the loader will report the reason
        return False


def _images_below(folder: Path, unsearched: dict[str, str]) -> Iterator[str]:
    """Yields entries named like images, as ``ImageFolder`` does. A folder reached again through links is skipped.

    Adds each folder that cannot be searched to `unsearched`, with the reason.
    """

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
    """Compares the images and prints the results. Returns the exit status."""
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
        differ = "0 differ" if samples else "nothing to compare"
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
    """Returns the numbers of images and bytes compared, and the files that neither side can read, with the reason."""
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
