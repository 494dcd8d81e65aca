"""What threads did in a recording, and how much time that adds up to."""

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
    """What one thread did: spans that follow one another, or lie within one another.

    Attributes:
        thread: its name.
        tid: the system's number of it.
        stages: the names of what it did.
        stage: int64 (n,), the number of each span's name in `stages`.
        begin_ns, end_ns: int64 (n,), on the clock of time.perf_counter_ns.
        items: int64 (n,), samples or images that were dealt with.
    """

    thread: str
    tid: int
    stages: tuple[str, ...]
    stage: Nanoseconds
    begin_ns: Nanoseconds
    end_ns: Nanoseconds
    items: Nanoseconds

    def of(self, stage: str) -> tuple[Nanoseconds, Nanoseconds]:
        """Begins and ends of a stage's spans."""
        chosen = self.stage == self.stages.index(stage) if stage in self.stages else np.zeros(len(self.stage), bool)
        return self.begin_ns[chosen], self.end_ns[chosen]

    def own_ns(self) -> Nanoseconds:
        """How long each span lasted, less the spans right within it."""
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
    """What threads spent on one stage.

    Attributes:
        thread: the thread's name, or what its kind is called.
        tid: the system's number of it; None where threads of a kind are taken together.
        stage: as in ``DataLoader.stats``, or what the consumer did.
        count: spans.
        items: samples, images.
        total_s: their time, with what lies within them.
        self_s: their time without that.
        share: `self_s` of the recorded time: 1.0 is one thread all the time.
    """

    thread: str
    tid: int | None
    stage: str
    count: int
    items: int
    total_s: float
    self_s: float
    share: float


def kind_of(thread: str) -> str:
    """The name without its number."""
    return re.sub(r"[ -]\d+$", "", thread)


def add_up(threads: Sequence[ThreadTimeline], recorded_s: float, *, per_thread: bool) -> tuple[StageTime, ...]:
    """Sums by thread (or kind of thread) and stage, the longest of each first."""
    sums: dict[tuple[str, int | None], dict[str, Nanoseconds]] = defaultdict(
        lambda: defaultdict(lambda: np.zeros(4, np.int64))
    )
    for one in threads:
        own, total = one.own_ns(), one.end_ns - one.begin_ns
        who = (one.thread, one.tid) if per_thread else (kind_of(one.thread), None)
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


def table(rows: Sequence[StageTime], recorded_s: float, dropped: int) -> str:
    """Rows for a reader."""
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
        lines = ["no loader of headrace's did anything"]
    lines.append(f"{recorded_s:.4f} s recorded; a share of 100% is one thread all the time")
    if dropped:
        lines.append(f"{dropped} spans are missing: there was no room for them")
    return "\n".join(lines)
