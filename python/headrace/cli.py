"""The command line: ``headrace demo | verify PATH | bench DATASET | report DATASET | doctor [DATASET]``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import headrace


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 up")
    return int(text)


_DATASET = "a folder of images, tar shards, a parquet, arrow or zip file, MDS or litdata shards, or module:object"


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands and their options."""
    top = argparse.ArgumentParser(prog="headrace", description="A drop-in PyTorch DataLoader for images.")
    top.add_argument("--version", action="version", version=f"headrace {headrace.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="equality, speed, a training run and a contact sheet, on real photographs")
    place = "where to put photographs and contact sheet; default: a temporary folder"
    demo.add_argument("--out", type=Path, metavar="DIR", help=place)
    demo.add_argument("--quick", action="store_true", help="fewer files and rounds: a quarter of a minute")
    demo.set_defaults(run=_demo)

    check = commands.add_parser("verify", help="compare your own images with Pillow and torch, bit for bit")
    check.add_argument("path", type=Path, metavar="PATH", help="an image, or a folder: searched with its sub-folders")
    check.add_argument("--recipe", choices=("train", "eval", "both"), default="both", help="default: both")
    check.add_argument("--workers", type=_count, metavar="N", help="native threads; default: one a core")
    check.add_argument("--limit", type=_count, metavar="N", help="only the first N files")
    check.set_defaults(run=_verify)

    health = commands.add_parser("doctor", help="check what affects pixels and speed here, and suggest remedies")
    scanned = f"scan this instead, and recommend what to do: {_DATASET}"
    health.add_argument("dataset", metavar="DATASET", nargs="?", help=scanned)
    health.add_argument("--workers", type=_count, metavar="N", help="native threads of the scan; default: one a core")
    health.add_argument("--limit", type=_count, metavar="N", help="only N files, drawn at random")
    health.set_defaults(run=_doctor)
    _add_measuring(commands)
    return top


# Each command is imported when it runs, so that --version and --help do not import torch.


def _demo(args: argparse.Namespace) -> int:
    from headrace.demo import tour

    return tour.run(args.out, args.quick)


def _verify(args: argparse.Namespace) -> int:
    from headrace.commands import verify

    names = ["train", "eval"] if args.recipe == "both" else [args.recipe]
    return verify.run(args.path, names, args.workers, args.limit)


def _doctor(args: argparse.Namespace) -> int:
    from headrace.commands import doctor

    return doctor.run() if args.dataset is None else doctor.run_dataset(args.dataset, args.workers, args.limit)


_RECIPE = (
    "transforms: train, eval, own (the dataset's), module:object, or an expression of names of headrace.transforms; "
    "default: own, or train where the dataset has none"
)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return seconds


def _add_measuring(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands that measure a dataset's loading."""
    race = commands.add_parser("bench", help="time headrace and torch's DataLoader on your dataset, after a comparison")
    race.add_argument("dataset", metavar="DATASET", help=_DATASET)
    workers = "numbers of workers, measured one by one; default: one a core"
    race.add_argument("--workers", type=_count, nargs="+", metavar="N", help=workers)
    race.add_argument("--batch-size", type=_count, default=64, metavar="N", help="default: 64")
    race.add_argument("--rounds", type=_count, default=5, metavar="N", help="default: 5")
    race.add_argument("--seconds", type=_seconds, default=2.0, metavar="S", help="of a measurement; default: 2")
    race.add_argument("--samples", type=_count, metavar="N", help="samples of an epoch; default: what fits the time")
    race.add_argument("--recipe", metavar="CODE", help=_RECIPE)
    race.add_argument("--json", type=Path, metavar="FILE", help="write the figures of all rounds")
    race.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    race.add_argument("--png", type=Path, metavar="FILE", help="write a plot (needs matplotlib)")
    race.set_defaults(run=_bench)

    page = commands.add_parser("report", help="write one HTML page about the loading of a dataset, or about a trace")
    what = page.add_mutually_exclusive_group(required=True)
    what.add_argument("dataset", metavar="DATASET", nargs="?", help=_DATASET)
    what.add_argument("--profile", type=Path, metavar="JSON", help="a trace that headrace.profile exported")
    page.add_argument("-o", "--out", type=Path, default="report.html", metavar="FILE", help="default: report.html")
    page.add_argument("--batches", type=_count, default=100, metavar="N", help="at most; default: 100")
    page.add_argument("--batch-size", type=_count, default=64, metavar="N", help="default: 64")
    page.add_argument("--workers", type=_count, metavar="N", help="native threads; default: one a core")
    page.add_argument("--recipe", metavar="CODE", help=_RECIPE)
    page.set_defaults(run=_report)


def _bench(args: argparse.Namespace) -> int:
    from headrace.commands import bench

    files = bench.Files(args.json, args.markdown, args.png)
    plan = bench.Plan(args.workers, args.batch_size, args.rounds, args.seconds, args.samples, args.recipe)
    return bench.run(args.dataset, plan, files)


def _report(args: argparse.Namespace) -> int:
    from headrace.commands import report

    if args.profile is not None:
        return report.of_trace(args.profile, args.out)
    return report.of_dataset(args.dataset, args.out, args.recipe, args.workers, args.batch_size, args.batches)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status."""
    args = parser().parse_args(arguments)
    try:
        import headrace.base.native  # noqa: F401
    except (ImportError, ValueError) as error:  # the module is missing, or rejects HEADRACE_ISA
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    try:
        status: int = args.run(args)
    except KeyboardInterrupt:
        print("\nheadrace: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
