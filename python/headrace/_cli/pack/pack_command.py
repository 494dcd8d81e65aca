"""``headrace pack``: packs a source as tar shards or an array, and prints what became of its images or videos."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._cli import inputs
from headrace._cli.console import results

if TYPE_CHECKING:
    from headrace._cli.pack.conversion import Conversion
    from headrace._cli.pack.packer import Packed
    from headrace.datasets.sources import BlobDataset

_SHARD_SIZE = 10**9  # bytes
_MOST_REASONS = 10  # that are printed


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    parser = inputs.add_command(
        commands,
        "pack",
        "write a dataset as tar shards that decode faster, or as an array",
        ["pack train packed", "pack train small --max-size 512 --quality 92", "pack clips packed --video --gop 16"],
        description="Writes a dataset as tar shards in WebDataset's layout, or as an array. The same command goes on "
        "with a run that was interrupted.",
    )
    parser.add_argument("source", metavar="SRC", help=inputs.DATASET)
    parser.add_argument(
        "folder", type=Path, metavar="DST", help="the folder of the pack: new, empty, or of an earlier run"
    )
    how = parser.add_mutually_exclusive_group()
    lossless = "JPEGs are rewritten with the same pixels, so that crops decode faster; this is the default"
    how.add_argument("--lossless", action="store_true", help=lossless)
    how.add_argument("--copy", action="store_true", help="images are stored as they are")
    smaller = "images with a shorter side above N pixels are resized to N and encoded as JPEG"
    how.add_argument("--max-size", type=inputs.count, metavar="N", help=smaller)
    raw = "decoded images instead of shards: resized and cropped to SIDE x SIDE pixels, in images.npy and labels.npy"
    how.add_argument("--raw", type=inputs.count, metavar="SIDE", help=raw)
    parser.add_argument(
        "--quality", type=inputs.quality, metavar="Q", help="of JPEGs that --max-size makes; default: 90"
    )
    video = "SRC holds videos: their packets go into MP4 or Matroska files without loss (or --copy: as they are)"
    parser.add_argument("--video", action="store_true", help=video)
    gop = "videos are encoded as H.264 with a key frame every N frames or more often: clips decode faster"
    parser.add_argument("--gop", type=inputs.count, metavar="N", help=gop)
    crf = "x264's constant rate factor of --gop, 0 to 51: lower is better and larger; default: 18"
    parser.add_argument("--crf", type=inputs.rate_factor, metavar="Q", help=crf)
    bytes_ = "bytes of a shard, about, such as 500MB or 2GiB; default: 1GB"
    parser.add_argument("--shard-size", type=inputs.size, metavar="SIZE", help=bytes_)
    part = "write the I-th of N shares of the shards: one of N machines; then headrace index DST"
    parser.add_argument("--shard", type=inputs.share, metavar="I/N", help=part)
    parser.add_argument("--workers", type=inputs.count, metavar="N", help="processes; default: one a core")
    engine = "what writes the shards: processes of this machine, or tasks of a Ray cluster (RAY_ADDRESS)"
    parser.add_argument(
        "--engine", choices=("processes", "ray"), default="processes", help=f"{engine}; default: processes"
    )
    parser.add_argument("--overwrite", action="store_true", help="remove another pack that DST holds")
    results.add_json_option(parser)
    parser.set_defaults(run=run, refuse=parser.error)


def run(args: argparse.Namespace) -> int:
    """Packs a source. Returns the exit status: 0 all is written, 1 nothing or not all is."""
    if args.quality is not None and args.max_size is None:
        args.refuse("--quality needs --max-size: other modes encode no images")
    if args.raw is not None and (args.shard or args.shard_size):
        args.refuse("--raw writes one array, which has no shards")
    if args.video and (args.lossless or args.max_size or args.raw):
        args.refuse("--video takes --copy or --gop; --lossless, --max-size and --raw are for images")
    if args.gop is not None and (not args.video or args.copy):
        args.refuse("--gop needs --video, without --copy: it encodes videos")
    if args.crf is not None and args.gop is None:
        args.refuse("--crf needs --gop: nothing else encodes videos")
    if args.engine == "ray" and (args.raw is not None or args.workers is not None):
        args.refuse("--engine ray takes neither --raw, which is one file, nor --workers: Ray knows its cores")
    with results.stdout_for_result(args) as out:
        document = _run_pack(args)
        if document is None:
            return 1
        results.write_document(document, args.json, out)
    return 0


def _run_pack(args: argparse.Namespace) -> dict[str, object] | None:
    """Packs, prints and returns what became of the samples; None, with a sentence, if not all could be written."""
    from headrace._cli.pack.array_pack import pack_raw
    from headrace._cli.pack.conversion import RAW
    from headrace._cli.pack.job_processes import run_in_processes as run_jobs
    from headrace._cli.pack.packer import MachineShare, pack
    from headrace._cli.pack.ray_tasks import run_with_ray
    from headrace._cli.pack.tar_contents import contents_of

    source, folder, processes = args.source, args.folder.absolute(), inputs.workers_of(args)
    try:
        conversion = _conversion_of(args)
        if Path(source).is_dir() and folder.resolve().is_relative_to(Path(source).resolve()):
            raise ValueError(f"{folder} is in {source} and would be a part of the dataset; give a folder elsewhere")
        known = packable_source(source, conversion.video)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about single files
            if conversion.kind == RAW:
                side = int(args.raw)
                pack_raw(
                    known, folder, side, workers=processes, overwrite=args.overwrite, bar=partial(samples_bar, "pack")
                )
                _print_array_report(known, folder, side)
                return {"path": str(folder), "samples": len(known)}
            contents = contents_of(known)
            packed = pack(
                contents,
                folder,
                conversion,
                shard_size=args.shard_size or _SHARD_SIZE,
                share=MachineShare(*(args.shard or (1, 1))),
                engine=run_with_ray if args.engine == "ray" else partial(run_jobs, workers=processes),
                overwrite=args.overwrite,
                bar=partial(samples_bar, "pack"),
            )
    except (ValueError, TypeError, ImportError, OSError, RuntimeError) as error:
        print(f"headrace pack: {error}", file=sys.stderr)
        if folder.is_dir() and isinstance(error, (OSError, RuntimeError)):
            print("What is finished is kept; the same command goes on with the others.", file=sys.stderr)
        return None
    _print_tar_report(packed, folder, conversion, contents.keys.why_numbers)
    return _json_document(packed, folder)


def _conversion_of(args: argparse.Namespace) -> Conversion:
    """Returns how images or videos are stored. Raises ImportError if a program or a library for that is missing."""
    from headrace._cli.pack.conversion import COPY, LOSSLESS, RAW, REENCODE, REMUX, SMALLER, Conversion

    if args.video:
        kind = COPY if args.copy else REMUX if args.gop is None else REENCODE
        how = Conversion(kind, gop=args.gop, crf=args.crf, video=True)
        _check_video(how)
        return how
    kind = RAW if args.raw else SMALLER if args.max_size else COPY if args.copy else LOSSLESS
    return Conversion(kind, args.raw or args.max_size, args.quality)


def _check_video(how: Conversion) -> None:
    from headrace._cli.pack.conversion import COPY
    from headrace._media.library_decoders import check_decoder, install_for_video

    try:
        from headrace._cli.pack.videos import ffmpeg_program, video_conversion  # noqa: F401 - imports PyAV
    except ImportError as error:
        raise ImportError(f"pack --video needs PyAV and torchcodec ({install_for_video()})") from error
    if how.kind != COPY:
        ffmpeg_program.check_ffmpeg(how)
        check_decoder("VideoDecoder")


def packable_source(text: str, video: bool = False) -> BlobDataset:
    """Returns the source that a command line names. Its paths are absolute, so that it is the same from every folder.

    Unlike `inputs.source_of`, it does not check that there are encoded images, and leaves errors as they are.

    Args:
        video: whether its samples are videos.

    Raises:
        NotNative, ValueError, OSError, ImportError: see `open_dataset` and `as_source`.
    """
    from headrace.datasets.opening.dataset_opening import open_dataset
    from headrace.datasets.sources import as_counted

    if video:
        from headrace._cli.pack.videos.video_source import video_files

        return video_files(text)
    path = Path(text).expanduser()
    return as_counted(open_dataset(str(path.absolute()) if path.exists() else text))


@contextmanager
def samples_bar(command: str, total: int, done: int) -> Iterator[Callable[[int], None]]:
    """Shows the samples that are done and, on a terminal, the time that is left."""
    from headrace._cli.console.progress import Progress

    with Progress(command, total, "sample", done=done) as shown:
        yield lambda more: shown.update(more) if more else None


def _print_array_report(source: BlobDataset, folder: Path, side: int) -> None:
    from headrace._cli.pack.manifest import IMAGES, LABELS

    labels = f', numpy.load("{folder / LABELS}")' if source.has_targets else ""
    print(f"{len(source):,} images of {side} x {side} pixels: {folder / IMAGES}")
    print(f'Read it with headrace.ImageArray(numpy.load("{folder / IMAGES}", mmap_mode="r"){labels}).')


def _print_tar_report(packed: Packed, folder: Path, conversion: Conversion, why_numbers: str | None) -> None:
    from headrace._cli.pack.conversion import COPY

    terms, records = packed.terms, packed.records
    samples = sum(record.samples for record in records.values())
    before = sum(record.images_before for record in records.values())
    after = sum(record.images_after for record in records.values())
    print(f"{samples:,} samples in {len(records)} of {terms.shards} shards ({packed.kept} of earlier runs): {folder}")
    what = "videos" if conversion.video else "images"
    print(f"{what}: {before:,} bytes in the source, {after:,} in the shards")
    kept = sum((Counter(record.kept) for record in records.values()), Counter[str]())
    if kept and conversion.kind != COPY:
        print(f"{kept.total():,} of {samples:,} {what} are stored as they were:")
        for reason, count in kept.most_common(_MOST_REASONS):
            print(f"  {count:,}: {reason}")
    if conversion.video:
        for line in _video_lines(_video_counts(packed)):
            print(line)
    if why_numbers is not None:
        print(f"The keys are numbers, not names: {why_numbers}.")
    if packed.missing:
        print(f"{len(packed.missing)} shards are written by others; then run: headrace index {folder}")
        return
    label = {"cls": "", None: ", label=None"}.get(terms.label, f", label={terms.label!r}")
    if conversion.video:
        from headrace.datasets.videos.videos_dataset import ENDINGS

        image = ";".join(ending.removeprefix(".") for ending in ENDINGS)
        print(f'Read it with headrace.Videos(TarShards("{folder}/*.tar", image="{image}"{label}), clips=...).')
        return
    upright = ", upright=True" if terms.upright else ""
    print(f'Read it with headrace.TarShards("{folder}/*.tar"{label}{upright}).')


def _video_counts(packed: Packed) -> dict[str, float]:
    from headrace._cli.pack.manifest import add_counts

    counts: dict[str, float] = {}
    for record in packed.records.values():
        add_counts(counts, record.video)
    return counts


def _video_lines(counts: dict[str, float]) -> Iterator[str]:
    """Yields what was compared, what was lost, and what a clip costs."""
    if frames := int(counts.get("frames", 0)):
        same = "differ in number, time or size" if counts.get("files") else "differ"
        by = int(counts.get("by_pyav", 0))
        others = f" ({by:,} of them by PyAV: torchcodec does not deliver all frames of their files)" if by else ""
        yield f"{frames:,} frames compared with the source by torchcodec{others}: 0 {same}"
    if files := counts.get("files"):
        mean, least = counts["psnr"] / files, counts["least_psnr"]
        yield f"PSNR of RGB: {mean:.1f} dB on average, {least:.1f} dB of the file with the lowest"
    each = [
        f"{counts[f'decoded_{when}'] / wanted:.1f} in {where}"
        for when, where in (("before", "the source"), ("after", "the shards"))
        if (wanted := counts.get(f"wanted_{when}"))
    ]
    if each:
        yield f"frames decoded for each one of a clip (16 frames, 4 apart): {', '.join(each)}"


def _json_document(packed: Packed, folder: Path) -> dict[str, object]:
    terms, records = packed.terms, packed.records
    return {
        "path": str(folder),
        "samples": sum(record.samples for record in records.values()),
        "shards": terms.shards,
        "written": len(records) - packed.kept,
        "kept_of_earlier_runs": packed.kept,
        "missing": [terms.name_of(shard) for shard in packed.missing],
        "images_before": sum(record.images_before for record in records.values()),
        "images_after": sum(record.images_after for record in records.values()),
        **({"video": _video_counts(packed)} if packed.terms.conversion.video else {}),
        "stored_as_they_were": dict(sum((Counter(record.kept) for record in records.values()), Counter[str]())),
    }
