"""The command line: ``headrace demo | verify DIR | doctor``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import headrace
from headrace.commands import doctor, verify
from headrace.demo import tour


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 up")
    return value


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(prog="headrace", description="A drop-in PyTorch DataLoader for images.")
    top.add_argument("--version", action="version", version=f"headrace {headrace.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="equality, speed, a training run and a contact sheet, on real photographs")
    tour.add_arguments(demo)
    demo.set_defaults(run=tour.run)

    check = commands.add_parser("verify", help="compare your own images with Pillow and torch, bit for bit")
    check.add_argument("folder", type=Path, metavar="DIR", help="searched for images, sub-folders too")
    check.add_argument("--recipe", choices=("train", "eval", "both"), default="both", help="default: both")
    check.add_argument("--workers", type=_count, metavar="N", help="native threads; default: one a core")
    check.add_argument("--limit", type=_count, metavar="N", help="only the first N files")
    check.set_defaults(run=_verify)

    health = commands.add_parser("doctor", help="what decides pixels and speed here, what is wrong, and what to do")
    health.set_defaults(run=lambda args: doctor.run())
    return top


def _verify(args: argparse.Namespace) -> int:
    names = ["train", "eval"] if args.recipe == "both" else [args.recipe]
    return verify.run(args.folder, names, args.workers, args.limit)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status."""
    args = parser().parse_args(arguments)
    try:
        status: int = args.run(args)
    except KeyboardInterrupt:
        print("\nheadrace: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
