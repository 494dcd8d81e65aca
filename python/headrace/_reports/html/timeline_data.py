"""The timeline of a recording as compact numbers for the page's script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from headrace._reports.loader.timeline import ThreadTimeline

_MOST = 60_000  # spans on the page; more make it slow to open
_PARTS = ("wait", "submit", "hand_over", "out_transform", "collate_fn")


class Lane(TypedDict):
    """The spans of one thread, as `spans` describes them."""

    thread: str
    spans: list[list[int]]


class Timeline(TypedDict):
    """What `spans` returns."""

    stages: list[str]
    lanes: list[Lane]
    end_us: int
    left_out: int


def collect_spans(threads: Sequence[ThreadTimeline]) -> Timeline:
    """Returns the stages' names and, for each thread, (stage, begin, duration) of its spans in microseconds.

    Times count from the first span. If there are too many spans, the ones that begin late are left out: `left_out`
    says how many.
    """
    stages = sorted({name for one in threads for name in one.stages})
    begins = np.sort(np.concatenate([one.begin_ns for one in threads])) if threads else np.empty(0, np.int64)
    first = int(begins[0]) if len(begins) else 0
    last = int(begins[_MOST - 1]) if len(begins) > _MOST else None
    lanes: list[Lane] = []
    end = 0
    for one in sorted(threads, key=_thread_sort_key):
        kept = np.flatnonzero(one.begin_ns <= last) if last is not None else np.arange(len(one.begin_ns))
        # Outer spans first: inner ones are drawn over them.
        kept = kept[np.lexsort((-one.end_ns[kept], one.begin_ns[kept]))]
        numbers = [stages.index(name) for name in one.stages]
        begin = (one.begin_ns[kept] - first) // 1000
        length = (one.end_ns[kept] - one.begin_ns[kept]) // 1000
        if len(kept):
            end = max(end, int((begin + length).max()))
            rows = [[numbers[int(stage)] for stage in one.stage[kept]], begin.tolist(), length.tolist()]
            lanes.append({"thread": one.thread, "spans": rows})
    return {"stages": stages, "lanes": lanes, "end_us": end, "left_out": max(0, len(begins) - _MOST)}


def _thread_sort_key(one: ThreadTimeline) -> tuple[bool, str, int]:
    """The consumer first, then by name."""
    return not any(part in one.stages for part in _PARTS), one.thread, one.tid
