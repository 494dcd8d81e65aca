"""``headrace doctor``: checks what affects pixels and speed, or scans a dataset; reports problems and remedies."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from headrace._cli import inputs
from headrace._cli.console import results

if TYPE_CHECKING:
    from headrace._cli.doctor.checks.finding import Finding


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    what = "check what affects pixels and speed here, or the files of a dataset, and suggest remedies"
    examples = ["doctor", "doctor train --limit 10000", "doctor train --bad - | xargs -d '\\n' ls -l"]
    parser = inputs.add_command(commands, "doctor", what, examples)
    scanned = f"scan this instead, and recommend what to do: {inputs.DATASET}; or a folder of videos"
    parser.add_argument("dataset", metavar="DATASET", nargs="?", help=scanned)
    parser.add_argument(
        "--workers", type=inputs.count, metavar="N", help="native threads of the scan; default: one a core"
    )
    parser.add_argument("--limit", type=inputs.count, metavar="N", help="only N files, drawn at random")
    kept = "find indexes of videos in this folder, and keep those that are learned, for DataLoader(video_index=FOLDER)"
    parser.add_argument("--video-index", metavar="FOLDER", help=kept)
    results.add_bad_option(parser)
    results.add_json_option(parser)
    parser.set_defaults(run=run, refuse=parser.error)


def findings() -> Iterator[Finding]:
    """Yields the findings of all checks, in the order of the report."""
    from headrace._cli.doctor.checks import gpu, machine, pixels

    for check in (
        pixels.versions,
        pixels.torch_,
        pixels.pillow,
        pixels.pillow_libjpeg,
        pixels.pass_order,
        pixels.decoding,
        machine.kernels,
        machine.cores,
        machine.control_groups,
        machine.memory,
        machine.memory_limits,
        machine.shared_memory,
        machine.huge_pages,
        machine.open_files,
        pixels.torchvision,
        gpu.driver,
        gpu.gpu,
        gpu.nvjpeg,
    ):
        yield check()


def run(args: argparse.Namespace) -> int:
    """Prints the report about this machine, or what the files of a dataset are and what to do.

    Returns:
        The exit status. Of a machine: 1 if anything is wrong, 0 otherwise. Of a dataset: 0 all files can be decoded, 1
        some cannot, 2 there is no such dataset, 130 interrupted; what was scanned before an interrupt is printed.
    """
    if args.dataset is None and args.bad is not None:
        args.refuse("--bad needs DATASET, whose files are checked")
    if args.dataset is None and args.video_index is not None:
        args.refuse("--video-index needs a folder of videos")
    with results.stdout_for_result(args) as out:
        return _check_machine(args, out) if args.dataset is None else _scan(args, out)


def _check_machine(args: argparse.Namespace, out: TextIO) -> int:
    found = []
    for finding in findings():
        print(finding, flush=True)
        found.append(finding)
    wrong = sum(one.level == "wrong" for one in found)
    print(f"\n{wrong} of {len(found)} checks failed." if wrong else "\nNothing is wrong.")
    results.write_document({"failed": wrong, "checks": [asdict(one) for one in found]}, args.json, out)
    return 1 if wrong else 0


def _scan(args: argparse.Namespace, out: TextIO) -> int:
    from headrace._base import control_group
    from headrace._cli.console.libtiff_messages import count_libtiff_messages
    from headrace._cli.doctor import scan_document, scan_summary
    from headrace._cli.doctor.disk import cold_speed, files_of
    from headrace._cli.doctor.scan import scan
    from headrace.datasets.videos.videos_dataset import find_videos

    folder = Path(args.dataset)
    if folder.is_dir() and (videos := find_videos(folder)):
        return _scan_videos(args, videos, out)
    if args.video_index is not None:
        raise inputs.GivenError(f"--video-index is for folders of videos, and {args.dataset} is none")
    source = inputs.source_of(args.dataset)
    disk = cold_speed(files_of(source))
    with count_libtiff_messages() as libtiff:
        found = scan(source, inputs.workers_of(args), args.limit)
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = control_group.memory_limit()
    for line in scan_summary.lines(found, disk):
        print(line)
    if libtiff.lines:
        print(f"libtiff       {libtiff}")
    print()
    advice = [*scan_summary.recommendations(found, disk, min(present, limit or present))]
    for one in advice:
        print(scan_summary.wrap_text(one))
    results.write_bad((place for place, _ in found.broken), args.bad, out)
    results.write_document(scan_document.document(args.dataset, found, disk, advice, libtiff.lines), args.json, out)
    return 130 if found.interrupted else 1 if found.broken else 0


def _scan_videos(args: argparse.Namespace, paths: list[str], out: TextIO) -> int:
    from headrace._media.library_decoders import install_for_video

    try:
        from headrace._cli.doctor import scan_summary, video_summary
        from headrace._cli.doctor.video_scan import scan_videos
        from headrace._storage.remote.cache import Cache
        from headrace._storage.video_indexes.shared_indexes import shared_by_process
    except ImportError as error:
        how = install_for_video()
        raise inputs.GivenError(f"{args.dataset} holds videos, which need PyAV and torchcodec ({how})") from error

    indexes = None if args.video_index is None else shared_by_process(Cache(args.video_index))
    found = scan_videos(paths, inputs.workers_of(args), args.limit, indexes)
    for line in video_summary.lines(found):
        print(line)
    print()
    advice = [*video_summary.recommendations(found)]
    for one in advice:
        print(scan_summary.wrap_text(one))
    results.write_bad((place for place, _ in found.broken), args.bad, out)
    results.write_document(video_summary.document(args.dataset, found, advice), args.json, out)
    return 130 if found.interrupted else 1 if found.broken else 0
