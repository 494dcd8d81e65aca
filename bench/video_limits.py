"""Where the time of a clip goes: FFmpeg's decoding of the frames that it needs, which nothing can be faster than.

    python -m bench.video_limits [--images DIR] [--clips N] [--out FILE]

On one core: milliseconds a clip of 16 frames, 4 apart, of videos as Kinetics has them, for decoding alone (headrace's
decoder, without colours), for torchcodec's frames and for `headrace.Videos` with RandomResizedCrop, flip, ToDtype and
Normalize in a DataLoader with one thread; and the time that the first use of a file takes, where its index is learned,
and where it is found in memory that processes share, or in a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import headrace
from bench.code.programs import native_videos, videos
from bench.datasets import PHOTOS
from bench.machine import describe, pick_cpus
from headrace._media.video import video_clips
from headrace._media.video.frame_times import WantedFrames
from headrace._media.video.known_videos import KnownVideos
from headrace._media.video.video_clips import learn_video, open_clip
from headrace._storage.video_indexes.index_folder import IndexFolder
from headrace._storage.video_indexes.index_memory import IndexMemory
from headrace._storage.video_indexes.shared_indexes import SharedIndexes

BATCH = 8


def milliseconds(function: Callable[[], object]) -> float:
    """How long a call takes."""
    begin = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - begin)


def by_torchcodec(path: str, numbers: list[int]) -> Any:
    """The frames as torchcodec makes them."""
    from torchcodec.decoders import VideoDecoder

    return VideoDecoder(path, num_ffmpeg_threads=1).get_frames_at(numbers)


_FIRST_USES = (
    "first use of a file",
    "learned and kept",
    "index found in memory",
    "index found in the folder",
)


def forget() -> None:
    """As in a process that begins."""
    vars(video_clips)["known_videos"] = KnownVideos()


def first_uses(paths: list[str], folder: Path) -> dict[str, list[float]]:
    """Milliseconds of the first use of each file in a process, by where its index comes from."""
    memory = SharedIndexes(IndexMemory(1 << 24), None)
    kept = SharedIndexes(None, IndexFolder(str(folder / "indexes"), None))
    figures: dict[str, list[float]] = {name: [] for name in _FIRST_USES}
    for path in paths:
        by_torchcodec(path, [0])
        for name, shared in zip(_FIRST_USES, (None, memory, memory, kept), strict=True):
            if shared is kept:
                forget()
                learn_video(path, kept)
            forget()
            figures[name].append(milliseconds(lambda path=path, shared=shared: learn_video(path, shared)))  # type: ignore[misc]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.video_limits", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, default=PHOTOS, metavar="DIR")
    parser.add_argument("--clips", type=int, default=64)
    parser.add_argument("--out", type=Path, help="also writes the figures here, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, pick_cpus(1))
    photographs = sorted(path for path in options.images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    with tempfile.TemporaryDirectory() as folder:
        paths = videos.Clips(photographs[: videos.VIDEOS], Path(folder)).paths
        figures: dict[str, Any] = {"machine": describe(), **first_uses(paths, Path(folder)), "rounds": []}
        chosen = [str(paths[n % len(paths)]) for n in range(options.clips)]
        data = headrace.Videos(chosen, None, videos.TRAIN, clips=native_videos.CLIP)
        loader = headrace.DataLoader(data, BATCH, num_workers=1, seed=1)
        for _ in range(3):
            begins = [random.randrange(300 - 61) for _ in range(options.clips)]
            clips = [(path, list(range(begin, begin + 64, 4))) for path, begin in zip(chosen, begins, strict=True)]
            each = {
                "decoding alone": [
                    milliseconds(lambda path=path, numbers=numbers: open_clip(path, lambda _: WantedFrames(numbers)))  # type: ignore[misc]
                    for path, numbers in clips
                ],
                "torchcodec": [milliseconds(lambda one=one: by_torchcodec(*one)) for one in clips],  # type: ignore[misc]
                "Videos": [milliseconds(lambda: [None for _ in loader]) / options.clips],
            }
            figures["rounds"].append({name: statistics.mean(times) for name, times in each.items()})
    for one in figures["rounds"]:
        share = one["decoding alone"] / one["Videos"]
        print(", ".join(f"{name} {ms:.1f} ms" for name, ms in one.items()) + f": {share:.2f} of it is decoding")
    for name in _FIRST_USES:
        print(f"{name}: {statistics.median(figures[name]):.2f} ms")
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
