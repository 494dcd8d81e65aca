"""The command line: ``headrace demo | verify PATH | pack SRC DST | index DST | doctor``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import headrace

_SHARD_SIZE = 10**9  # bytes


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 up")
    return int(text)


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMG]?)(i?)B?", text, re.IGNORECASE)
    size = 0.0
    if match is not None:
        size = float(match[1]) * (1024 if match[3] else 1000) ** ("KMG".find(match[2].upper()) + 1 if match[2] else 0)
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of bytes such as 500MB or 2GiB")
    return int(size)


def _share(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text} is not a share such as 2/4, the second of four")
    return int(match[1]), int(match[2])


def _quality(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not a quality from 1 to 100")
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

    _add_packing(commands)

    health = commands.add_parser("doctor", help="check what affects pixels and speed here, and suggest remedies")
    health.set_defaults(run=_doctor)
    return top


def _add_packing(commands: Any) -> None:
    pack = commands.add_parser(
        "pack",
        help="write a dataset as tar shards that decode faster, or as an array",
        description="Writes a dataset as tar shards in WebDataset's layout, or as an array. The same command goes on "
        "with a run that was interrupted.",
    )
    source = "a folder of images, tar shards, Parquet, Arrow or zip files, MDS or litdata shards, or module:object"
    pack.add_argument("source", metavar="SRC", help=source)
    pack.add_argument(
        "folder", type=Path, metavar="DST", help="the folder of the pack: new, empty, or of an earlier run"
    )
    how = pack.add_mutually_exclusive_group()
    lossless = "JPEGs are rewritten with the same pixels, so that crops decode faster; this is the default"
    how.add_argument("--lossless", action="store_true", help=lossless)
    how.add_argument("--copy", action="store_true", help="images are stored as they are")
    smaller = "images with a shorter side above N pixels are resized to N and encoded as JPEG"
    how.add_argument("--max-size", type=_count, metavar="N", help=smaller)
    raw = "decoded images instead of shards: resized and cropped to SIDE x SIDE pixels, in images.npy and labels.npy"
    how.add_argument("--raw", type=_count, metavar="SIDE", help=raw)
    pack.add_argument("--quality", type=_quality, metavar="Q", help="of JPEGs that --max-size makes; default: 90")
    size = "bytes of a shard, about, such as 500MB or 2GiB; default: 1GB"
    pack.add_argument("--shard-size", type=_bytes, metavar="SIZE", help=size)
    share = "write the I-th of N shares of the shards: one of N machines; then headrace index DST"
    pack.add_argument("--shard", type=_share, metavar="I/N", help=share)
    pack.add_argument("--workers", type=_count, metavar="N", help="processes; default: one a core")
    engine = "what writes the shards: processes of this machine, or tasks of a Ray cluster (RAY_ADDRESS)"
    pack.add_argument(
        "--engine", choices=("processes", "ray"), default="processes", help=f"{engine}; default: processes"
    )
    pack.add_argument("--overwrite", action="store_true", help="remove another pack that DST holds")
    pack.set_defaults(run=_pack)

    index = commands.add_parser("index", help="join the shards of a pack, or index tar shards")
    index.add_argument("folder", type=Path, metavar="DST", help="a folder of shards")
    index.set_defaults(run=_index)


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


def _pack(args: argparse.Namespace) -> int:
    if args.quality is not None and args.max_size is None:
        parser().error("--quality needs --max-size: other modes encode no images")
    if args.raw is not None and (args.shard or args.shard_size):
        parser().error("--raw writes one array, which has no shards")
    if args.engine == "ray" and (args.raw is not None or args.workers is not None):
        parser().error("--engine ray takes neither --raw, which is one file, nor --workers: Ray knows its cores")
    from headrace.commands import pack
    from headrace.pack.conversion import COPY, LOSSLESS, RAW, SMALLER, Conversion

    size = args.raw or args.max_size
    kind = RAW if args.raw else SMALLER if args.max_size else COPY if args.copy else LOSSLESS
    shard_size, share = args.shard_size or _SHARD_SIZE, args.shard or (1, 1)
    how = Conversion(kind, size, args.quality)
    with_ray = args.engine == "ray"
    return pack.run(args.source, args.folder, how, shard_size, share, args.workers, with_ray, args.overwrite)


def _index(args: argparse.Namespace) -> int:
    from headrace.commands import index

    return index.run(args.folder)


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
