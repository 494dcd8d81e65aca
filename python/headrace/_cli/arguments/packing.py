"""headrace pack and index."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from headrace._cli.arguments.values import DATASET, Commands, count, quality, share, size

_SHARD_SIZE = 10**9  # bytes


def add(commands: Commands[Any]) -> None:
    """Adds the commands."""
    pack = commands.add_parser(
        "pack",
        help="write a dataset as tar shards that decode faster, or as an array",
        description="Writes a dataset as tar shards in WebDataset's layout, or as an array. The same command goes on "
        "with a run that was interrupted.",
    )
    pack.add_argument("source", metavar="SRC", help=DATASET)
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
    pack.add_argument("--quality", type=quality, metavar="Q", help="of JPEGs that --max-size makes; default: 90")
    bytes_ = "bytes of a shard, about, such as 500MB or 2GiB; default: 1GB"
    pack.add_argument("--shard-size", type=size, metavar="SIZE", help=bytes_)
    part = "write the I-th of N shares of the shards: one of N machines; then headrace index DST"
    pack.add_argument("--shard", type=share, metavar="I/N", help=part)
    pack.add_argument("--workers", type=count, metavar="N", help="processes; default: one a core")
    engine = "what writes the shards: processes of this machine, or tasks of a Ray cluster (RAY_ADDRESS)"
    pack.add_argument(
        "--engine", choices=("processes", "ray"), default="processes", help=f"{engine}; default: processes"
    )
    pack.add_argument("--overwrite", action="store_true", help="remove another pack that DST holds")
    pack.set_defaults(run=_pack, refuse=pack.error)

    index = commands.add_parser("index", help="join the shards of a pack, or index tar shards")
    index.add_argument(
        "shards", metavar="DST", help="a folder of shards, or shards as TarShards takes them: {000..146}"
    )
    out = (
        "write the indexes of all shards to one file, such as headrace.index.npz beside them, so that a bucket of many "
    )
    index.add_argument("--out", type=Path, metavar="FILE", help=out + "shards is opened with one request")
    index.set_defaults(run=_index)


def _pack(args: argparse.Namespace) -> int:
    if args.quality is not None and args.max_size is None:
        args.refuse("--quality needs --max-size: other modes encode no images")
    if args.raw is not None and (args.shard or args.shard_size):
        args.refuse("--raw writes one array, which has no shards")
    if args.engine == "ray" and (args.raw is not None or args.workers is not None):
        args.refuse("--engine ray takes neither --raw, which is one file, nor --workers: Ray knows its cores")
    from headrace._cli.commands import pack
    from headrace._cli.pack.conversion import COPY, LOSSLESS, RAW, SMALLER, Conversion

    side = args.raw or args.max_size
    kind = RAW if args.raw else SMALLER if args.max_size else COPY if args.copy else LOSSLESS
    shard_size, part = args.shard_size or _SHARD_SIZE, args.shard or (1, 1)
    how = Conversion(kind, side, args.quality)
    with_ray = args.engine == "ray"
    return pack.run(args.source, args.folder, how, shard_size, part, args.workers, with_ray, args.overwrite)


def _index(args: argparse.Namespace) -> int:
    from headrace._cli.commands import index

    return index.run(args.shards, args.out)
