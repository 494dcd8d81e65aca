"""Runs the parts of the demo one after another and says what each of them shows."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from headrace.demo import equality, race, sheet, training
from headrace.demo.folder import lay_out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The demo's own options."""
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to put photographs and contact sheet; default: a temporary folder",
    )
    parser.add_argument("--quick", action="store_true", help="fewer files and rounds: a quarter of a minute")


def run(args: argparse.Namespace) -> int:
    """The whole tour; the exit status."""
    begin = time.perf_counter()
    out: Path = args.out if args.out is not None else Path(tempfile.mkdtemp(prefix="headrace-demo-"))
    workers = len(os.sched_getaffinity(0))
    try:
        out.mkdir(parents=True, exist_ok=True)
        photos = lay_out(out / "photos", 50 if args.quick else 320)
    except OSError as error:
        print(f"headrace demo: {error}", file=sys.stderr)
        return 2
    print(f"1. An ImageFolder of {photos.files} files, made from 30 photographs, in {out / 'photos'}")

    try:
        print("\n2. The same pixels? Every file, natively and by Pillow and torch")
        equality.prove(photos.train, workers)
        print("\n3. How fast? RandomResizedCrop(224), flip, ToTensor, Normalize")
        print(race.table(race.race(photos.train, *((1, 0.2) if args.quick else (5, 1.0)))))
    except AssertionError as difference:
        print(f"headrace demo: not equal: {difference}", file=sys.stderr)
        return 1

    print("\n4. Training a small network")
    training.train(photos.train, photos.validation, 1 if args.quick else 2, workers)

    print("\n5. A contact sheet of one augmented batch")
    path = out / "contact_sheet.png"
    sheet.save_sheet(photos.train, path, workers)
    print(f"   {path}")
    print(f"\nDone in {time.perf_counter() - begin:.0f} s.")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m headrace.demo``."""
    parser = argparse.ArgumentParser(prog="python -m headrace.demo", description=(__doc__ or "").splitlines()[0])
    add_arguments(parser)
    return run(parser.parse_args(arguments))
