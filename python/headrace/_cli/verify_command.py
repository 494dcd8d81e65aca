"""``headrace verify``: compares images with Pillow and torch through two common recipes, or a pack with its source."""

from __future__ import annotations

import argparse
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace._cli import inputs

_CHUNK = 256  # files per step of the progress bar


class _Found(NamedTuple):
    """Result of the search for images.

    Attributes:
        paths: paths of the files, sorted.
        unreadable: path -> reason, for entries with an image's name that are not regular files.
        unsearched: folder -> reason, for folders that could not be searched.
    """

    paths: list[str]
    unreadable: dict[str, str]
    unsearched: dict[str, str]


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "verify", help="compare your own images with Pillow and torch, or a pack with its source, bit for bit"
    )
    path = "an image, or a folder: searched with its sub-folders; with SRC, a folder that headrace pack wrote"
    parser.add_argument("path", type=Path, metavar="PATH", help=path)
    parser.add_argument("source", nargs="?", metavar="SRC", help="the dataset that PATH was packed from")
    parser.add_argument("--recipe", choices=("train", "eval", "both"), help="of images; default: both")
    parser.add_argument(
        "--workers", type=inputs.count, metavar="N", help="threads, of packs processes; default: one a core"
    )
    parser.add_argument("--limit", type=inputs.count, metavar="N", help="only the first N files or samples")
    parser.set_defaults(run=run, refuse=parser.error)


def run(args: argparse.Namespace) -> int:
    """Prints what was compared, and which files cannot be read or the first sample of a pack that differs.

    Returns:
        The exit status: 0 all is equal, 1 something differs or an image cannot be read, 2 nothing can be compared.
    """
    if args.source is not None:
        if args.recipe is not None:
            args.refuse("--recipe is for images; a pack is compared with SRC before any transform")
        return _verify_pack(args)
    from headrace.datasets.sources.image_folder import EXTENSIONS

    try:
        found = _search(args.path)
    except OSError as error:
        why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        print(f"headrace verify: {args.path} {why}", file=sys.stderr)
        return 2
    for folder, why in found.unsearched.items():
        print(f"headrace verify: {folder} cannot be searched: {why}", file=sys.stderr)
    if not found.paths and not found.unreadable:
        endings = ", ".join(EXTENSIONS)
        print(f"headrace verify: no images in {args.path}: no file name ends in {endings}", file=sys.stderr)
        return 2
    del found.paths[args.limit or len(found.paths) :]
    names = [args.recipe] if args.recipe in ("train", "eval") else ["train", "eval"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's warnings about single files come twice each and hide the result
        return _compare_all(found, names, inputs.workers_of(args))


def _search(path: Path) -> _Found:
    """Returns the images at `path`. Raises OSError if the path does not exist or cannot be accessed."""
    found = _Found([], {}, {})
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
    from headrace.datasets.sources.image_folder import EXTENSIONS

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


def _compare_all(found: _Found, names: list[str], threads: int) -> int:
    """Compares the images and prints the results. Returns the exit status."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    from headrace._base.errors import VerificationError

    unreadable = dict(found.unreadable)
    for name in names:
        samples = size = 0
        bar = tqdm(total=len(found.paths), desc=name, unit="file", leave=False, disable=not sys.stderr.isatty())
        with bar:
            for first in range(0, len(found.paths), _CHUNK):
                chunk = found.paths[first : first + _CHUNK]
                try:
                    more_samples, more_bytes, failed = _compare_chunk(chunk, name, threads)
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


def _compare_chunk(paths: list[str], recipe: str, threads: int) -> tuple[int, int, dict[str, str]]:
    """Returns the numbers of images and bytes compared, and the files that neither side can read, with the reason."""
    from headrace._cli import recipes
    from headrace.datasets.sources import ImageFiles
    from headrace.loader import DataLoader

    dataset = ImageFiles(paths, None, recipes.train() if recipe == "train" else recipes.evaluation())
    loader = DataLoader(dataset, 32, num_workers=threads, seed=0, on_error="skip", max_errors=None)
    report = loader.verify(len(loader))
    if report.samples == len(paths):
        return report.samples, report.bytes, {}
    for _ in loader:
        pass
    return report.samples, report.bytes, {error.location: error.reason for error in loader.errors}


def _verify_pack(args: argparse.Namespace) -> int:
    from headrace._cli.pack.array_verification import check_raw
    from headrace._cli.pack.conversion import RAW
    from headrace._cli.pack.manifest import loaded
    from headrace._cli.pack.pack_command import samples_bar, source_of
    from headrace._cli.pack.pack_verification import Difference, check
    from headrace._cli.pack.tar_contents import contents_of

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about single files
            manifest = loaded(args.path)
            known = source_of(args.source)
            processes = inputs.workers_of(args)
            if manifest.terms.conversion.kind == RAW:
                count = check_raw(known, manifest, args.path, workers=processes, limit=args.limit, bar=samples_bar)
            else:
                contents = contents_of(known)
                count = check(contents, manifest, args.path, workers=processes, limit=args.limit, bar=samples_bar)
    except Difference as error:
        print(f"differs: {error}")
        return 1
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        print(f"headrace verify: {error}", file=sys.stderr)
        return 2
    print(f"{count:,} samples compared with {args.source}: 0 differ")
    return 0
