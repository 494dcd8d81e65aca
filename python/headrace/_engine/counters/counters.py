"""What an engine has counted so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace._engine.counters.helper_work import HelperWork, work_since
from headrace._engine.counters.percentiles import Counts
from headrace._media.video.decoding_cost import DecodingCost


@dataclass(frozen=True)
class Counters:
    """Totals of an engine since it was made.

    Attributes:
        stages: items and busy nanoseconds, summed over threads, by stage.
        durations: durations of the timed items by stage, in the buckets of `headrace._engine.counters.percentiles`.
        bytes_read: bytes of the samples that were read, from files or memory.
        workers: native threads, as the operating system numbers them.
        asleep: how many of them were taken away and do nothing.
        python: threads in which Pillow, FFmpeg and Python steps run; none where the consumer's thread runs them.
        videos: frames that were decoded.
        helpers: what other machines have made, by their addresses.
    """

    stages: dict[str, tuple[int, int]] = field(default_factory=dict)
    durations: dict[str, Counts] = field(default_factory=dict)
    bytes_read: int = 0
    workers: tuple[int, ...] = ()
    python: tuple[int, ...] = ()
    asleep: int = 0
    videos: DecodingCost = field(default_factory=DecodingCost)
    helpers: dict[str, HelperWork] = field(default_factory=dict)

    @property
    def working(self) -> int:
        """Number of native threads that take samples."""
        return len(self.workers) - self.asleep

    def since(self, before: Counters) -> Counters:
        """Returns what was counted since `before`, with the threads of now."""
        stages = {}
        for name, (items, ns) in self.stages.items():
            items_then, ns_then = before.stages.get(name, (0, 0))
            stages[name] = items - items_then, ns - ns_then
        durations = {name: one - before.durations.get(name, 0) for name, one in self.durations.items()}
        size, videos = self.bytes_read - before.bytes_read, self.videos - before.videos
        helpers = work_since(self.helpers, before.helpers)
        return Counters(stages, durations, size, self.workers, self.python, self.asleep, videos, helpers)


def sum_counters(parts: Iterable[Counters]) -> Counters:
    """Returns the sum of several engines' counters."""
    items: Counter[str] = Counter()
    busy: Counter[str] = Counter()
    durations: dict[str, Counts] = {}
    size = asleep = 0
    videos = DecodingCost()
    workers: list[int] = []
    python: list[int] = []
    helpers: dict[str, HelperWork] = {}
    for one in parts:
        for name, (count, ns) in one.stages.items():
            items[name] += count
            busy[name] += ns
        for name, counts in one.durations.items():
            durations[name] = counts + durations.get(name, 0)
        size += one.bytes_read
        asleep += one.asleep
        videos += one.videos
        for address, work in one.helpers.items():
            helpers[address] = helpers.get(address, HelperWork()) + work
        workers.extend(one.workers)
        python.extend(one.python)
    stages = {name: (items[name], busy[name]) for name in items}
    return Counters(stages, durations, size, tuple(workers), tuple(python), asleep, videos, helpers)
