"""The arguments of ``headrace pack`` and ``headrace index``; needs no torch, so that --help is quick."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SHARD_SIZE = 10**9  # bytes


def add_packing(commands: Any, count: Callable[[str], int]) -> None:
    """Adds ``pack`` and ``index`` to the commands.

    Args:
        commands: what ``ArgumentParser.add_subparsers`` returned.
        count: the type of whole numbers from 1 up.
    """
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
    how.add_argument("--max-size", type=count, metavar="N", help=smaller)
    raw = "decoded images instead of shards: resized and cropped to SIDE x SIDE pixels, in images.npy and labels.npy"
    how.add_argument("--raw", type=count, metavar="SIDE", help=raw)
    pack.add_argument("--quality", type=_quality, metavar="Q", help="of JPEGs that --max-size makes; default: 90")
    size = "bytes of a shard, about, such as 500MB or 2GiB; default: 1GB"
    pack.add_argument("--shard-size", type=_bytes, metavar="SIZE", help=size)
    share = "write the I-th of N shares of the shards: one of N machines; then headrace index DST"
    pack.add_argument("--shard", type=_share, metavar="I/N", help=share)
    pack.add_argument("--workers", type=count, metavar="N", help="processes; default: one a core")
    engine = "what writes the shards: processes of this machine, or tasks of a Ray cluster (RAY_ADDRESS)"
    pack.add_argument(
        "--engine", choices=("processes", "ray"), default="processes", help=f"{engine}; default: processes"
    )
    pack.add_argument("--overwrite", action="store_true", help="remove another pack that DST holds")
    pack.set_defaults(run=_pack, refuse=pack.error)

    index = commands.add_parser("index", help="join the shards of a pack, or index tar shards")
    index.add_argument("folder", type=Path, metavar="DST", help="a folder of shards")
    index.set_defaults(run=_index)


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


def _pack(args: argparse.Namespace) -> int:
    if args.quality is not None and args.max_size is None:
        args.refuse("--quality needs --max-size: other modes encode no images")
    if args.raw is not None and (args.shard or args.shard_size):
        args.refuse("--raw writes one array, which has no shards")
    if args.engine == "ray" and (args.raw is not None or args.workers is not None):
        args.refuse("--engine ray takes neither --raw, which is one file, nor --workers: Ray knows its cores")
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
