"""Timelines of the threads in a recording, and sums of their times."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ThreadTimeline:
    """Spans of one thread; two spans are either disjoint or nested.

    Attributes:
        thread: name of the thread.
        tid: the system's thread id.
        stages: names of the stages.
        stage: int64 (n,), index of each span's stage in `stages`.
        begin_ns, end_ns: int64 (n,), on the clock of time.perf_counter_ns.
        items: int64 (n,), number of samples or images processed in each span.
    """

    thread: str
    tid: int
    stages: tuple[str, ...]
    stage: Nanoseconds
    begin_ns: Nanoseconds
    end_ns: Nanoseconds
    items: Nanoseconds

    def spans_of(self, stage: str) -> tuple[Nanoseconds, Nanoseconds]:
        """Returns the begin and end times of a stage's spans."""
        chosen = self.stage == self.stages.index(stage) if stage in self.stages else np.zeros(len(self.stage), bool)
        return self.begin_ns[chosen], self.end_ns[chosen]

    def own_ns(self) -> Nanoseconds:
        """Returns the duration of each span without the spans directly inside it."""
        own = self.end_ns - self.begin_ns
        order = np.lexsort((-self.end_ns, self.begin_ns))
        begin, end = self.begin_ns[order], self.end_ns[order]
        if (begin[1:] >= end[:-1]).all():
            return own
        around: list[int] = []
        for i in order.tolist():
            while around and self.end_ns[around[-1]] <= self.begin_ns[i]:
                around.pop()
            if around:
                own[around[-1]] -= self.end_ns[i] - self.begin_ns[i]
            around.append(i)
        return own


@dataclass(frozen=True)
class StageTime:
    """Time that a thread, or all threads of a kind, spent on one stage.

    Attributes:
        thread: name of the thread or of the kind of thread.
        tid: the system's thread id; None for a sum over threads.
        stage: a stage as in ``DataLoader.stats``, or a part of the consumer's ``__next__``.
        count: number of spans.
        items: number of samples or images.
        total_s: time of the spans in seconds, including nested spans.
        self_s: the same without nested spans.
        share: `self_s` divided by the recorded time: 1.0 is one thread all the time.
    """

    thread: str
    tid: int | None
    stage: str
    count: int
    items: int
    total_s: float
    self_s: float
    share: float


def kind_of_thread(thread: str) -> str:
    """Returns the thread's name without its number."""
    return re.sub(r"[ -]\d+$", "", thread)


def sum_stage_times(threads: Sequence[ThreadTimeline], recorded_s: float, *, per_thread: bool) -> tuple[StageTime, ...]:
    """Returns sums by thread (or kind of thread) and stage; within a thread, the longest stage first."""
    sums: dict[tuple[str, int | None], dict[str, Nanoseconds]] = defaultdict(
        lambda: defaultdict(lambda: np.zeros(4, np.int64))
    )
    for one in threads:
        own, total = one.own_ns(), one.end_ns - one.begin_ns
        who = (one.thread, one.tid) if per_thread else (kind_of_thread(one.thread), None)
        for number, stage in enumerate(one.stages):
            chosen = one.stage == number
            sums[who][stage] += np.array(
                [chosen.sum(), one.items[chosen].sum(), total[chosen].sum(), own[chosen].sum()]
            )
    return tuple(
        StageTime(*who, stage, int(count), int(items), total / 1e9, own / 1e9, own / 1e9 / recorded_s)
        for who, stages in sorted(sums.items(), key=lambda pair: (pair[0][0], pair[0][1] or 0))
        for stage, (count, items, total, own) in sorted(stages.items(), key=lambda pair: -pair[1][3])
    )


def format_stage_table(rows: Sequence[StageTime], recorded_s: float, dropped: int) -> str:
    """Returns the rows as a printable table."""
    width = max((len(one.thread) for one in rows), default=0)
    line = f"{{:<{width}}}  {{:<13}}  {{:>8}}  {{:>9}}  {{:>9}}  {{:>7}}"
    lines = [line.format("threads", "stage", "count", "total s", "self s", "share")]
    before: tuple[str, int | None] = ("", None)
    for one in rows:
        who = "" if (one.thread, one.tid) == before else one.thread
        before = (one.thread, one.tid)
        times = f"{one.total_s:.4f}", f"{one.self_s:.4f}", f"{one.share:.1%}"
        lines.append(line.format(who, one.stage, one.count, *times))
    if not rows:
        lines = ["no headrace loader was active"]
    lines.append(f"{recorded_s:.4f} s recorded; a share of 100% is one thread all the time")
    if dropped:
        lines.append(f"{dropped} spans are missing: there were more than max_spans")
    return "\n".join(lines)
