"""Scans video files: what they are, which ones cannot be decoded, and what a clip of them costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headrace._cli import recipes
from headrace._cli.console.progress import Progress
from headrace._media.video.decoding_cost import DecodingCost
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.video_clips import learn_video, open_clip
from headrace._storage.video_indexes.shared_indexes import SharedIndexes

CLIP = recipes.clip()


@dataclass(frozen=True)
class VideoFacts:
    """What one file is.

    Attributes:
        frame_rate: frames a second, on average.
        group: mean number of frames from key frame to key frame; None: not known.
        later_frames: whether frames are stored in another order than they are shown in (B-frames).
        rotation: degrees by which it is turned when it is shown.
        why_library: why torchcodec decodes it; None: it has an index of its packets.
        cost: frames that were decoded for a clip.
        clip_s: processor time of a clip in seconds.
    """

    path: str
    bytes: int
    codec: str
    width: int
    height: int
    frame_rate: float
    seconds: float
    group: float | None
    later_frames: bool
    rotation: float
    why_library: str | None
    cost: DecodingCost
    clip_s: float


@dataclass
class VideoScan:
    """What the files of a folder are.

    Attributes:
        files: number of video files.
        facts: of those that were scanned.
        broken: (path, reason) of those of which a clip cannot be decoded.
        interrupted: whether the user ended the scan early.
    """

    files: int
    threads: int
    facts: list[VideoFacts] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def scanned(self) -> int:
        return len(self.facts) + len(self.broken)

    @property
    def cost(self) -> DecodingCost:
        """Frames that were decoded for the clips of all files with an index, and where indexes come from."""
        return sum((one.cost for one in self.facts), DecodingCost())


def scan_videos(
    paths: Sequence[str], threads: int, limit: int | None = None, indexes: SharedIndexes | None = None
) -> VideoScan:
    """Decodes a random clip of each file; on Ctrl-C, returns what was scanned.

    Args:
        limit: largest number of files, drawn at random. None: all.
        indexes: in which indexes are found, and kept; None: all are learned.
    """
    random, found = np.random.default_rng(0), VideoScan(len(paths), threads)
    chosen = paths if limit is None else [paths[one] for one in np.sort(random.permutation(len(paths))[:limit])]
    draws = random.random(len(chosen)).tolist()
    begin = time.perf_counter()
    with Progress("doctor", len(chosen), "file", label="scan") as bar, ThreadPoolExecutor(threads) as pool:
        waiting = {pool.submit(_look_at, *one, indexes): one[0] for one in zip(chosen, draws, strict=True)}
        try:
            for one in as_completed(waiting):
                try:
                    found.facts.append(one.result())
                except Exception as error:  # whatever torchcodec raises for a broken file
                    found.broken.append((waiting[one], " ".join(str(error).split())))
                bar.update(1)
        except KeyboardInterrupt:
            found.interrupted = True
            pool.shutdown(wait=True, cancel_futures=True)
    found.facts.sort(key=lambda one: one.path)
    found.broken.sort()
    found.seconds = time.perf_counter() - begin
    return found


def _look_at(path: str, draw: float, indexes: SharedIndexes | None) -> VideoFacts:
    known, came = learn_video(path, indexes)
    begin = time.thread_time()
    clip = open_clip(path, lambda video: CLIP.choose(video, [draw], 0))
    for place in range(len(clip)):
        clip[place]
    index, said = known.index if isinstance(known.index, PacketIndex) else None, known.described
    return VideoFacts(
        path,
        Path(path).stat().st_size,
        said.codec or "?",
        said.width,
        said.height,
        said.average_fps or 0.0,
        said.duration_seconds or 0.0,
        None if index is None else len(index) / int(index.is_key.sum()),
        index is not None and bool(np.any(np.diff(index.pts) < 0)),
        float(said.rotation or 0.0),
        known.index if isinstance(known.index, str) else None,
        clip.cost + came,
        time.thread_time() - begin,
    )
