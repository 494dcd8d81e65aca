"""``headrace verify``: compares images with Pillow and torch through two common recipes, or a pack with its source."""

from __future__ import annotations

import argparse
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TextIO

from headrace._cli import inputs
from headrace._cli.console import results

_CHUNK = 64  # files per step of the progress


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


@dataclass
class _Compared:
    """What became of all images with one recipe; ``str()`` is a line.

    Attributes:
        images, bytes: their numbers, up to a difference.
        difference: what differs first; None: nothing.
    """

    recipe: str
    images: int = 0
    bytes: int = 0
    difference: str | None = None

    def __str__(self) -> str:
        if self.difference is not None:
            return f"{self.recipe}: differs: {self.difference}"
        differ = "0 differ" if self.images else "nothing to compare"
        return f"{self.recipe}: {self.images} images, {self.bytes:,} bytes compared with Pillow and torch: {differ}"


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    what = "compare your own images with Pillow and torch, or a pack with its source, bit for bit"
    examples = ["verify photos --bad broken.txt", "verify packed train --json"]
    parser = inputs.add_command(commands, "verify", what, examples)
    path = "an image, or a folder: searched with its sub-folders; with SRC, a folder that headrace pack wrote"
    parser.add_argument("path", type=Path, metavar="PATH", help=path)
    parser.add_argument("source", nargs="?", metavar="SRC", help="the dataset that PATH was packed from")
    parser.add_argument("--recipe", choices=("train", "eval", "both"), help="of images; default: both")
    parser.add_argument(
        "--workers", type=inputs.count, metavar="N", help="threads, of packs processes; default: one a core"
    )
    parser.add_argument("--limit", type=inputs.count, metavar="N", help="only the first N files or samples")
    results.add_bad_option(parser)
    results.add_json_option(parser)
    parser.set_defaults(run=run, refuse=parser.error)


def run(args: argparse.Namespace) -> int:
    """Prints what was compared, and which files cannot be read or the first sample of a pack that differs.

    Returns:
        The exit status: 0 all is equal, 1 something differs or an image cannot be read, 2 nothing can be compared.
    """
    if args.source is not None:
        if args.recipe is not None:
            args.refuse("--recipe is for images; a pack is compared with SRC before any transform")
        if args.bad is not None:
            args.refuse("--bad is for images; of a pack, the first sample that differs is named")
    with results.stdout_for_result(args) as out:
        return _verify_images(args, out) if args.source is None else _verify_pack(args, out)


def _verify_images(args: argparse.Namespace, out: TextIO) -> int:
    from headrace._cli.console.libtiff_messages import count_libtiff_messages
    from headrace.datasets.sources.image_folder import EXTENSIONS

    try:
        found = _find_files(args.path)
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
    chosen = [args.recipe] if args.recipe in ("train", "eval") else ["train", "eval"]
    compared: list[_Compared] = []
    unreadable = dict(found.unreadable)
    with warnings.catch_warnings(), count_libtiff_messages() as libtiff:
        warnings.simplefilter("ignore")  # Pillow's warnings about single files come twice each and hide the result
        try:
            _compare_files(found.paths, chosen, inputs.workers_of(args), compared, unreadable)
        finally:  # also what was found before an interrupt
            results.write_bad(sorted(unreadable), args.bad, out)
    total = len(found.paths) + len(found.unreadable)
    _print_unreadable(unreadable, total, str(libtiff) if libtiff.lines else "")
    document = {
        "path": str(args.path),
        "files": total,
        "recipes": [asdict(one) for one in compared],
        "unreadable": results.broken_files_as_json(sorted(unreadable.items())),
        "unsearched": results.broken_files_as_json(found.unsearched.items()),
        "libtiff_lines": libtiff.lines,
    }
    results.write_document(document, args.json, out)
    return 1 if unreadable or found.unsearched or any(one.difference for one in compared) else 0


def _find_files(path: Path) -> _Found:
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


def _compare_files(
    paths: list[str], recipes: list[str], threads: int, compared: list[_Compared], unreadable: dict[str, str]
) -> None:
    """Compares the images through each recipe and prints the results, up to the first difference.

    Args:
        compared: gets the result of each recipe.
        unreadable: gets the reason for each file that cannot be read.
    """
    from headrace._base.errors import VerificationError
    from headrace._cli.console.progress import Progress

    for recipe in recipes:
        result = _Compared(recipe)
        compared.append(result)
        with Progress("verify", len(paths), "file", label=recipe) as bar:
            for first in range(0, len(paths), _CHUNK):
                chunk = paths[first : first + _CHUNK]
                try:
                    more_samples, more_bytes, failed = _compare_chunk(chunk, recipe, threads)
                except VerificationError as error:
                    result.difference = str(error)
                    break
                result.images, result.bytes = result.images + more_samples, result.bytes + more_bytes
                unreadable |= failed
                bar.update(len(chunk))
        print(result)
        if result.difference is not None:
            return


def _print_unreadable(unreadable: dict[str, str], total: int, libtiff: str) -> None:
    if unreadable:
        print(f"{len(unreadable)} of {total} files cannot be read, here as with Pillow:")
    for line in results.describe_broken_files(sorted(unreadable.items())):
        print(line)
    if libtiff:
        print(libtiff)


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


def _verify_pack(args: argparse.Namespace, out: TextIO) -> int:
    from headrace._cli.console.libtiff_messages import count_libtiff_messages
    from headrace._cli.pack.pack_verification import Difference

    difference, count = None, 0
    with count_libtiff_messages() as libtiff:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow's about single files
                count = _check_pack(args)
        except Difference as error:
            difference = str(error)
        except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
            print(f"headrace verify: {error}", file=sys.stderr)
            return 2
    if difference is None:
        print(f"{count:,} samples compared with {args.source}: 0 differ")
    else:
        print(f"differs: {difference}")
    if libtiff.lines:
        print(libtiff)
    document = {
        "path": str(args.path),
        "source": args.source,
        "samples": None if difference else count,
        "difference": difference,
        "libtiff_lines": libtiff.lines,
    }
    results.write_document(document, args.json, out)
    return 0 if difference is None else 1


def _check_pack(args: argparse.Namespace) -> int:
    """Returns the number of samples that were compared. Raises Difference, and what reading raises."""
    from headrace._cli.pack.array_verification import check_raw
    from headrace._cli.pack.conversion import RAW
    from headrace._cli.pack.manifest import require_manifest
    from headrace._cli.pack.pack_command import packable_source, samples_bar
    from headrace._cli.pack.pack_verification import check_tar_pack
    from headrace._cli.pack.tar_contents import contents_of

    manifest = require_manifest(args.path)
    known = packable_source(args.source, manifest.terms.conversion.video)
    processes, bar = inputs.workers_of(args), partial(samples_bar, "verify")
    if manifest.terms.conversion.kind == RAW:
        return check_raw(known, manifest, args.path, workers=processes, limit=args.limit, bar=bar)
    return check_tar_pack(contents_of(known), manifest, args.path, workers=processes, limit=args.limit, bar=bar)
