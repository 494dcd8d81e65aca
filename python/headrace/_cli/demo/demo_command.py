"""``headrace demo``: runs the parts of the demo one after another and prints what each of them shows."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from headrace._cli import inputs


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    what = "equality, speed, a training run and a contact sheet, on real photographs"
    parser = inputs.add_command(commands, "demo", what, ["demo --quick", "demo --out /tmp/demo"])
    place = "where to put photographs and contact sheet; default: a temporary folder"
    parser.add_argument("--out", type=Path, metavar="DIR", help=place)
    parser.add_argument("--quick", action="store_true", help="fewer files and rounds: a quarter of a minute")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs and prints the whole demo.

    Returns:
        The exit status: 0 success, 1 pixels differ, 2 the files cannot be written.
    """
    import tempfile

    from headrace._base.cores import usable_cores
    from headrace._cli.demo import benchmark, contact_sheet, equality_proof, training
    from headrace._cli.demo.photo_folder import make_photo_folder

    begin = time.perf_counter()
    workers, quick = usable_cores(), args.quick
    try:
        out = Path(args.out or tempfile.mkdtemp(prefix="headrace-demo-"))
        out.mkdir(parents=True, exist_ok=True)
        _set_temporary_folder(out)
        photos = make_photo_folder(out / "photos", 50 if quick else 320)
    except OSError as error:
        return _report_write_error(error)
    print(f"1. An ImageFolder of {photos.files} files, made from 30 photographs, in {out / 'photos'}")

    try:
        print("\n2. The same pixels? Every file, natively and by Pillow and torch")
        equality_proof.prove_equality(photos.train, workers)
        print("\n3. How fast? RandomResizedCrop(224), flip, ToTensor, Normalize")
        print(benchmark.format_speed_table(benchmark.measure_speeds(photos.train, *((1, 0.2) if quick else (5, 1.0)))))
    except benchmark.NoOpponentError as error:
        print(f"   Left out: {error}.")
    except AssertionError as difference:
        print(f"headrace demo: not equal: {difference}", file=sys.stderr)
        return 1

    print("\n4. Training a small network")
    training.train(photos.train, photos.validation, 1 if quick else 2, workers)

    print("\n5. A contact sheet of one augmented batch")
    path = out / "contact_sheet.png"
    try:
        contact_sheet.save_sheet(photos.train, path, workers)
    except OSError as error:
        return _report_write_error(error)
    print(f"   {path}")
    print(f"\nDone in {time.perf_counter() - begin:.0f} s.")
    return 0


def _set_temporary_folder(out: Path) -> None:
    """Uses `out` if there is no temporary folder: torch's optimizers need one at import, its workers for sockets."""
    import tempfile

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        tempfile.tempdir = str(out)


def _report_write_error(error: OSError) -> int:
    """Prints the error in one sentence and returns the exit status."""
    why = error.strerror or str(error)  # strerror omits the error number
    where = f"{error.filename}: " if error.filename is not None else ""
    print(f"headrace demo: {where}{why}; name a writable folder with --out DIR", file=sys.stderr)
    return 2
