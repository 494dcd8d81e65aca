"""What one rank tells the others about itself, and what is said of all of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace._reports.ranks import checked_json

_VERSION = 1


@dataclass(frozen=True)
class Load:
    """What the loaders of a process have done since they began; differences of two are what happened in between.

    Attributes:
        batches: handed out.
        worked_s, waited_s: seconds between the calls of ``next()``, and in them.
        stage_s: seconds of the native threads by stage, summed over threads.
        far: whether samples come from other machines.
        bottleneck: of the loader whose consumer has waited longest; "" if there is no verdict.
    """

    batches: int = 0
    worked_s: float = 0.0
    waited_s: float = 0.0
    stage_s: dict[str, float] = field(default_factory=dict)
    far: bool = False
    bottleneck: str = ""


def sum_loads(loads: Sequence[Load]) -> Load:
    """Returns what several loaders of a process have done together."""
    stages: Counter[str] = Counter()
    for one in loads:
        for name, seconds in one.stage_s.items():
            stages[name] += seconds  # type: ignore[assignment]
    most = max(loads, key=lambda one: one.waited_s, default=Load())
    return Load(
        sum(one.batches for one in loads),
        sum(one.worked_s for one in loads),
        sum(one.waited_s for one in loads),
        dict(stages),
        most.far,
        most.bottleneck,
    )


@dataclass(frozen=True)
class Arrivals:
    """When a rank arrived at the newest collectives of all ranks.

    Attributes:
        backend: that counts them: "gloo", "nccl"; "" if none are known.
        numbers: of the collectives, the same on all ranks, ascending.
        times_us: when it called each, in microseconds since 1970.
        device_us: how long each took on the device, with the wait for the last rank; -1: not measured.
        every_s: seconds between two readings of torch's records.
    """

    backend: str = ""
    numbers: list[int] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)
    device_us: list[int] = field(default_factory=list)
    every_s: float = 1.0


@dataclass(frozen=True)
class RankFigures:
    """One rank, in the newest seconds.

    Attributes:
        rank, ranks: its number, and how many there are.
        host: name of its machine.
        pid: number of its process.
        at: when this was written, in seconds since 1970.
        every_s: seconds until the next.
        seconds: that the figures are of.
        batches, worked_s, waited_s, far, bottleneck: see `Load`.
        busy_s, read_s: seconds of the native threads in all stages, and in "read", which is also a wait for storage.
        stopped_s, stopped: seconds for which the CPU quota stopped its control group, summed over cores, and the share
            of the quota's periods in which it did; 0 without a quota.
        delayed_s: seconds that the consumer's thread was ready to run, without a core.
        threads_delayed_s: the same of all threads of the process, summed.
        cpu_mhz: clock of the fastest of some of its cores; 0 if unknown.
        gpu_mhz: clock of its GPU; 0 if unknown.
        arrivals: at collectives.
    """

    rank: int
    ranks: int
    host: str
    pid: int
    at: float
    every_s: float
    seconds: float = 0.0
    batches: int = 0
    worked_s: float = 0.0
    waited_s: float = 0.0
    busy_s: float = 0.0
    read_s: float = 0.0
    far: bool = False
    bottleneck: str = ""
    stopped_s: float = 0.0
    stopped: float = 0.0
    delayed_s: float = 0.0
    threads_delayed_s: float = 0.0
    cpu_mhz: float = 0.0
    gpu_mhz: float = 0.0
    arrivals: Arrivals = field(default_factory=Arrivals)

    def as_text(self) -> str:
        """Returns it as JSON."""
        return checked_json.as_text(self, _VERSION)

    @classmethod
    def of_text(cls, text: str) -> RankFigures:
        """Returns what `as_text` wrote.

        Raises:
            ValueError: another version of headrace wrote it, or it is damaged.
        """
        found = checked_json.of_text(cls, text, _VERSION, {"Arrivals": Arrivals})
        lists = (found.arrivals.numbers, found.arrivals.times_us, found.arrivals.device_us)
        numbers = [value for value in vars(found).values() if isinstance(value, float)]
        if not all(map(math.isfinite, numbers)) or len({len(one) for one in lists}) != 1:
            raise ValueError("its values are damaged")
        return found


@dataclass(frozen=True)
class JobVerdict:
    """Which rank all others wait for; ``str()`` gives some lines.

    Attributes:
        job: identifies the job.
        at: when it was made, in seconds since 1970.
        ranks, seen: ranks of the job, and those whose figures were compared.
        straggler: its rank; -1: none is known.
        host: its machine.
        reason: "storage", "network" (reads of other machines), "quota" (of CPU time), "clock" (of the CPU), "gpu" (a
            slower clock, or arrivals that only the device explains), "cores" (it waits for a core), "loader" (its
            loader is slow otherwise), "step" (its own work between batches), "unknown"; "" without a straggler.
        certainty: "sure", "likely", "unsure", or "not enough data".
        cost: share of the time in which every other rank waited for it; 0 if that is not measured.
        costs: by rank, the share of the time in which every other rank waited for that one; of those that are known.
        why: the figures.
        every_s: the greatest number of seconds between two readings of torch's records; the ranks agree on it.
    """

    job: str
    at: float
    ranks: int
    seen: int
    straggler: int = -1
    host: str = ""
    reason: str = ""
    certainty: str = "not enough data"
    cost: float = 0.0
    costs: dict[str, object] = field(default_factory=dict)
    why: str = ""
    every_s: float = 1.0

    @property
    def speedup(self) -> float:
        """The speed-up of the whole job with a rank in place of the straggler that is as fast as the next slowest."""
        return 1.0 / (1.0 - min(0.99, max(0.0, self.cost)))

    def __str__(self) -> str:
        seen = f"{self.ranks} ranks compared"
        if self.seen < self.ranks:
            seen = f"{self.seen} of {seen}"
        if self.straggler < 0:
            return f"straggler: none ({self.certainty}; {seen})\nwhy: {self.why}"
        words = WORDS.get(self.reason, self.reason)
        lines = [
            f"straggler: rank {self.straggler} on {self.host}, {words} ({self.certainty}; {seen})",
            f"why: {self.why}",
        ]
        if self.cost > 0:
            lines.append(
                f"cost: all other ranks wait for it {self.cost:.0%} of the time; the job would be about "
                f"{self.speedup:.2f}x as fast without"
                + (", or more: it is stopped inside of collectives, too" if self.reason == "quota" else "")
            )
        return "\n".join(lines)


#: The reasons in words.
WORDS = {
    "storage": "its storage is slow",
    "network": "its reads from other machines are slow",
    "quota": "stopped by its CPU quota",
    "clock": "the clock of its CPU is slow",
    "gpu": "its GPU is slow",
    "cores": "it waits for a core",
    "loader": "its loader is slow",
    "step": "slow in its own step, not in the loader",
    "unknown": "the reason is not known",
}
