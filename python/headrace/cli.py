"""The command line: ``headrace demo | verify PATH | pack SRC DST | index DST | doctor``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import headrace
from headrace.commands.pack_arguments import add_packing


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 up")
    return int(text)


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

    check = commands.add_parser(
        "verify", help="compare your own images with Pillow and torch, or a pack with its source, bit for bit"
    )
    path = "an image, or a folder: searched with its sub-folders; with SRC, a folder that headrace pack wrote"
    check.add_argument("path", type=Path, metavar="PATH", help=path)
    check.add_argument("source", nargs="?", metavar="SRC", help="the dataset that PATH was packed from")
    check.add_argument("--recipe", choices=("train", "eval", "both"), help="of images; default: both")
    check.add_argument("--workers", type=_count, metavar="N", help="threads, of packs processes; default: one a core")
    check.add_argument("--limit", type=_count, metavar="N", help="only the first N files or samples")
    check.set_defaults(run=_verify)

    add_packing(commands, _count)

    health = commands.add_parser("doctor", help="check what affects pixels and speed here, and suggest remedies")
    health.set_defaults(run=_doctor)
    return top


# Each command is imported when it runs, so that --version and --help do not import torch.


def _demo(args: argparse.Namespace) -> int:
    from headrace.demo import tour

    return tour.run(args.out, args.quick)


def _verify(args: argparse.Namespace) -> int:
    if args.source is not None:
        if args.recipe is not None:
            parser().error("--recipe is for images; a pack is compared with SRC before any transform")
        from headrace.commands import verify_pack

        return verify_pack.run(args.path, args.source, args.workers, args.limit)
    from headrace.commands import verify

    names = ["train", "eval"] if args.recipe in (None, "both") else [args.recipe]
    return verify.run(args.path, names, args.workers, args.limit)


def _doctor(args: argparse.Namespace) -> int:
    from headrace.commands import doctor

    return doctor.run()


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
