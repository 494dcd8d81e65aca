"""headrace demo, verify and doctor."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from headrace._cli.arguments.values import DATASET, Commands, count


def add(commands: Commands[Any]) -> None:
    """Adds the commands."""
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
    check.add_argument("--workers", type=count, metavar="N", help="threads, of packs processes; default: one a core")
    check.add_argument("--limit", type=count, metavar="N", help="only the first N files or samples")
    check.set_defaults(run=_verify, refuse=check.error)

    health = commands.add_parser("doctor", help="check what affects pixels and speed here, and suggest remedies")
    scanned = f"scan this instead, and recommend what to do: {DATASET}"
    health.add_argument("dataset", metavar="DATASET", nargs="?", help=scanned)
    health.add_argument("--workers", type=count, metavar="N", help="native threads of the scan; default: one a core")
    health.add_argument("--limit", type=count, metavar="N", help="only N files, drawn at random")
    health.set_defaults(run=_doctor)


def _demo(args: argparse.Namespace) -> int:
    from headrace._cli.demo import demo_parts

    return demo_parts.run(args.out, args.quick)


def _doctor(args: argparse.Namespace) -> int:
    from headrace._cli.commands import doctor

    return doctor.run() if args.dataset is None else doctor.run_dataset(args.dataset, args.workers, args.limit)


def _verify(args: argparse.Namespace) -> int:
    if args.source is not None:
        if args.recipe is not None:
            args.refuse("--recipe is for images; a pack is compared with SRC before any transform")
        from headrace._cli.commands import verify_pack

        return verify_pack.run(args.path, args.source, args.workers, args.limit)
    from headrace._cli.commands import verify

    names = ["train", "eval"] if args.recipe in (None, "both") else [args.recipe]
    return verify.run(args.path, names, args.workers, args.limit)
