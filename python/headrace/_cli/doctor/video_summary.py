"""A scan of videos as text and as a JSON document: what they are, and what would make clips cheaper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from headrace._cli.console.results import broken_files_as_json, describe_broken_files
from headrace._cli.doctor.video_scan import CLIP, VideoFacts, VideoScan
from headrace._media.video.decoding_cost import SHORT_GROUP

_WORTH = 1.3  # times fewer frames from which on more key frames are advised


def lines(found: VideoScan) -> Iterator[str]:
    """Yields the report's lines."""
    part = "all" if found.scanned == found.files else f"{found.scanned:,} of"
    early = " (interrupted)" if found.interrupted else ""
    yield f"scanned       {part} {found.files:,} videos{early}, a clip of each, in {found.threads} threads"
    facts = found.facts
    if facts:
        for name, values in _counts(facts).items():
            yield f"{name:<14}" + ", ".join(f"{value} {count:,}" for value, count in values.most_common(6))
        yield f"{'length, s':<14}{_spread([one.seconds for one in facts], 1)}"
        if groups := [one.group for one in facts if one.group is not None]:
            yield f"{'key frames':<14}one every {_spread(groups, 0)} frames"
        later, turned = (
            sum(map(bool, each)) for each in zip(*((f.later_frames, f.rotation) for f in facts), strict=True)
        )
        yield f"{'B-frames':<14}in {later:,}"
        yield f"{'turned':<14}{turned:,}"
        cost = [1e3 * one.clip_s for one in facts]
        yield f"{'a clip':<14}{_spread(cost, 1)} ms of a core ({CLIP.frames} frames, 4 apart, decoded to RGB)"
        if found.cost.wanted:
            yield f"{'decoded':<14}{found.cost.of_each:.1f} frames for each one of a clip"
    if found.cost.indexes_from_folder:
        yield f"{'indexes':<14}{found.cost.indexes_learned:,} learned, {found.cost.indexes_from_folder:,} found"
    yield f"broken        {len(found.broken):,}" + (":" if found.broken else "")
    yield from describe_broken_files(found.broken)


def recommendations(found: VideoScan) -> Iterator[str]:
    """Yields sentences that say what to do, with the numbers that they follow from."""
    if not found.facts:
        return
    each = float(np.median([one.clip_s for one in found.facts]))
    yield (
        f"A clip of {CLIP.frames} frames takes {1e3 * each:.0f} ms of a core before its transform: a core delivers at "
        f"most {1 / max(each, 1e-9):,.0f} clips/s, so training that takes more than that for each core waits for data."
    )
    cost = found.cost
    if cost.wanted and cost.decoded > _WORTH * cost.with_short_groups:
        now, then = cost.of_each, cost.of_each_with_short
        yield (
            f"{now:.1f} frames are decoded for each one of a clip. With a key frame every {SHORT_GROUP} frames "
            f"(ffmpeg -g {SHORT_GROUP}) it would be about {then:.1f}, {now / then:.1f} times fewer; the files grow, "
            "and their pixels are others, so measure the accuracy."
        )
    for reason, count in Counter(one.why_library for one in found.facts if one.why_library).most_common(3):
        yield f"{count:,} files are decoded by torchcodec, every frame from the key frame on: {reason}."
    if found.broken:
        yield (
            f"{len(found.broken):,} files cannot be decoded: delete or repair them, or pass on_error='skip', which "
            "counts and reports them."
        )


def document(dataset: str, found: VideoScan, advice: Sequence[str]) -> dict[str, object]:
    """Returns what the report says, by the keys that docs/command-line.md lists."""
    counts = {name: dict(values) for name, values in _counts(found.facts).items()}
    cost = found.cost
    return {
        "dataset": dataset,
        "videos": found.files,
        "scanned": found.scanned,
        "interrupted": found.interrupted,
        "seconds": found.seconds,
        "threads": found.threads,
        **counts,
        "b_frames": sum(one.later_frames for one in found.facts),
        "turned": sum(bool(one.rotation) for one in found.facts),
        "frames": {"wanted": cost.wanted, "decoded": cost.decoded, "with_short_groups": cost.with_short_groups},
        "indexes": {"learned": cost.indexes_learned, "found": cost.indexes_from_folder},
        "clip_ms_of_a_core": 1e3 * float(np.median([one.clip_s for one in found.facts])) if found.facts else None,
        "by_torchcodec": dict(Counter(one.why_library for one in found.facts if one.why_library)),
        "bytes_scanned": sum(one.bytes for one in found.facts),
        "broken": broken_files_as_json(found.broken),
        "recommendations": list(advice),
    }


def _counts(facts: Sequence[VideoFacts]) -> dict[str, Counter[str]]:
    return {
        "codecs": Counter(one.codec for one in facts),
        "sizes": Counter(f"{one.width}x{one.height}" for one in facts),
        "frame_rates": Counter(f"{one.frame_rate:.3g}" for one in facts),
    }


def _spread(values: Sequence[float], digits: int) -> str:
    """Returns the least, the median and the greatest value."""
    least, median, most = (f"{float(np.quantile(values, one)):,.{digits}f}" for one in (0, 0.5, 1))
    return median if least == most else f"{median} ({least} to {most})"
