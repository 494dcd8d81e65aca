"""Where the time of a clip goes: FFmpeg's decoding of the frames that it needs, which nothing can be faster than.

    python -m bench.video_limits [--images DIR] [--clips N] [--rounds N] [--counts] [--out FILE]

On one core: milliseconds a sample of each row for decoding alone (headrace's decoder, without colours), for
torchcodec's frames and for `headrace.Videos` with the row's transform in a DataLoader with one thread. The rows are
those of docs/videos.md: a clip of 16 frames, 4 apart, of videos as Kinetics has them; two such clips of a file; 8
frames spread over 60 s. Then the time that the first use of a file takes, where its index is learned, and where it is
found in memory that processes share, or in a folder.

With `--counts` nothing is timed: the mean numbers of frames of a sample, of those from each key frame to the last
wanted frame after it, which torchcodec decodes, and of those that are decoded here; and the most memory of the process
during an epoch, above what it had before, with one thread and with two, beside the bytes of a batch.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import headrace
from bench.code.programs import native_videos, videos
from bench.datasets import PHOTOS
from bench.machine import describe, pick_cpus
from headrace._media.video import video_clips
from headrace._media.video.known_videos import KnownVideos
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.video_clips import learn_video, open_clip
from headrace._storage.video_indexes.index_folder import IndexFolder
from headrace._storage.video_indexes.index_memory import IndexMemory
from headrace._storage.video_indexes.shared_indexes import SharedIndexes


def milliseconds(function: Callable[[], object]) -> float:
    """How long a call takes."""
    begin = time.perf_counter()
    function()
    return 1e3 * (time.perf_counter() - begin)


class Row(NamedTuple):
    """Samples that are measured.

    Attributes:
        program: makes the dataset that a program has, of photographs.
        clips: the frames of a sample.
        batch: samples of a batch.
        share: of `--clips` that are measured.
    """

    program: Callable[[list[Path], Path], Any]
    clips: Any
    batch: int
    share: float = 1.0


ROWS = {
    "a clip": Row(videos.augment_clips, native_videos.CLIP, 8),
    "two clips": Row(native_videos.two_clips, native_videos.TWO_CLIPS, 4, 0.5),
    "8 frames of 60 s": Row(native_videos.spread_frames, native_videos.SPREAD, 2, 0.125),
}


def by_torchcodec(path: str, clips: Any) -> Any:
    """The frames of a sample as torchcodec makes them."""
    from torchcodec.decoders import VideoDecoder

    return clips(VideoDecoder(path, num_ffmpeg_threads=1), 0)


def by_decoder(path: str, clips: Any) -> Any:
    """The frames of a sample, decoded, without colours."""
    draws = [random.random() for _ in range(clips.drawn)]
    return open_clip(path, lambda video: clips.choose(video, draws, 0))


def measure_row(row: Row, photographs: list[Path], folder: Path, options: argparse.Namespace) -> list[dict[str, float]]:
    """Milliseconds a sample, in each round."""
    program, count = row.program(photographs, folder), max(row.batch, int(options.clips * row.share))
    paths = [str(program.paths[number % len(program.paths)]) for number in range(count)]
    data = headrace.Videos(paths, None, program.transform, clips=row.clips)
    loader = headrace.DataLoader(data, row.batch, num_workers=1, seed=1)
    for _ in loader:  # what is learned once
        pass
    found: list[dict[str, float]] = []
    for _ in range(options.rounds):
        one = {"Videos": milliseconds(lambda: [None for _ in loader]) / count}
        for name, function in (("decoding alone", by_decoder), ("torchcodec", by_torchcodec)):
            times = [milliseconds(functools.partial(function, path, row.clips)) for path in paths]
            one[name] = statistics.mean(times)
        found.append(one)
    loader.close()
    return found


def count_frames(row: Row, photographs: list[Path], folder: Path) -> dict[str, float]:
    """Mean numbers of frames: of a sample, that torchcodec decodes, and that are decoded here."""
    paths = sorted({str(path) for path in row.program(photographs, folder).paths})
    counts = []
    random.seed(0)
    for path in paths * (20 if row.clips.drawn else 1):
        known, draws = learn_video(path)[0], [random.random() for _ in range(row.clips.drawn)]
        wanted = row.clips.choose(known.described, draws, 0)
        assert isinstance(known.index, PacketIndex)
        packets = np.unique(known.index.order[wanted.numbers])
        keys = known.index.keys_of(packets)
        to_the_last = sum(int(packets[keys == key].max()) - int(key) + 1 for key in np.unique(keys))
        cost = open_clip(path, lambda _, wanted=wanted: wanted).cost  # type: ignore[misc]
        counts.append((cost.wanted, to_the_last, cost.decoded))
    return dict(zip(("frames", "torchcodec decodes", "decoded"), np.mean(counts, axis=0).tolist(), strict=True))


def most_memory(row: Row, photographs: list[Path], folder: Path) -> dict[str, int]:
    """The most bytes of the process during an epoch, above those before, by the number of threads; and of a batch."""
    program, found = row.program(photographs, folder), {}
    paths = [str(program.paths[number % len(program.paths)]) for number in range(8 * row.batch)]
    for threads in (1, 2):
        data = headrace.Videos(paths, None, program.transform, clips=row.clips)
        loader = headrace.DataLoader(data, row.batch, num_workers=threads, seed=1)
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the present size
        before = memory("VmRSS")
        found["of a batch"] = max(batch.nbytes for batch in loader)
        found[f"threads: {threads}"] = memory("VmHWM") - before
        loader.close()
        del loader
    return found


def memory(name: str) -> int:
    """Bytes of memory that the process has now (VmRSS), or has had at most (VmHWM)."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(name))
    return int(line.split()[1]) << 10


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
        by_torchcodec(path, headrace.uniform_frames(1))
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
    parser.add_argument("--clips", type=int, default=64, help="samples of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--counts", action="store_true", help="frames and memory in place of times")
    parser.add_argument("--out", type=Path, help="also writes the figures here, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, pick_cpus(2 if options.counts else 1))
    photographs = sorted(path for path in options.images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    photographs *= -(-32 // len(photographs))
    figures: dict[str, Any] = {"machine": describe()}
    with tempfile.TemporaryDirectory() as folder:
        for name, row in ROWS.items():
            if options.counts:
                frames, most = (one(row, photographs, Path(folder)) for one in (count_frames, most_memory))
                figures[name] = {**frames, **most}
                said = [f"{what} {number:.1f}" for what, number in frames.items()]
                print(f"{name}: " + ", ".join(said + [f"{what} {size / 1e6:.1f} MB" for what, size in most.items()]))
                continue
            figures[name] = rounds = measure_row(row, photographs, Path(folder), options)
            for one in rounds:
                share = one["decoding alone"] / one["Videos"]
                times = ", ".join(f"{what} {ms:.1f} ms" for what, ms in one.items())
                print(f"{name}: {times}: {share:.2f} of it is decoding", flush=True)
        if not options.counts:
            paths = videos.Clips(photographs[: videos.VIDEOS], Path(folder)).paths
            figures |= first_uses(paths, Path(folder))
            for use in _FIRST_USES:
                print(f"{use}: {statistics.median(figures[use]):.2f} ms")
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
