"""What a process reports about its loaders, as values that fit into JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace._reports.ranks import checked_json
from headrace._reports.ranks.rank_figures import JobVerdict

FORMAT = 2


@dataclass(frozen=True)
class StageFigures:
    """One stage of the native threads in the newest epoch.

    Attributes:
        share: of the time of all stages, from 0 to 1.
        ms, p50_ms, p99_ms: of one sample; see ``headrace._reports.loader.stats.Stage``.
    """

    name: str
    share: float
    ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class LoaderFigures:
    """One loader. All values are those of its newest epoch, unless they are called recent.

    Attributes:
        number: distinguishes the loaders of a process; that of a loader that is gone is used again.
        dataset: its class.
        samples: of the dataset; None: not known.
        route: as ``DataLoader.route``.
        workers: native threads, or torch's worker processes.
        epoch: its number.
        batch, batches: handed out so far, and of the whole epoch; -1: not known.
        ended: whether the epoch has ended.
        unit: what `speed` and `speeds` count: "samples", or "batches" where the samples of one are not known.
        recent_s: seconds that the next two values are the mean of.
        speed: recent number of units a second.
        working: recent share of the consumer's time in which it worked; in the rest it waited for the loader.
        speeds: units a second of the last minute, in steps of the time between two files, the newest last.
        quiet_s: seconds since it handed out a batch.
        step_ms, wait_ms: p50 and p99 of the consumer's own steps and of its waits.
        bytes_read: of samples.
        failed: samples that were skipped or replaced.
        bottleneck, verdict: of ``stats()``; the verdict's lines.
        stages: the native stages.
        trouble: why figures are missing; "" if none are.
        stats: all of ``stats().as_dict()``.
    """

    number: int
    dataset: str
    samples: int | None
    route: str
    workers: int
    epoch: int = 0
    batch: int = 0
    batches: int = -1
    ended: bool = False
    unit: str = "batches"
    recent_s: float = 0.0
    speed: float = 0.0
    working: float = 0.0
    speeds: list[float] = field(default_factory=list)
    quiet_s: float = 0.0
    step_ms: list[float] = field(default_factory=lambda: [0.0, 0.0])
    wait_ms: list[float] = field(default_factory=lambda: [0.0, 0.0])
    bytes_read: int = 0
    failed: int = 0
    bottleneck: str = ""
    verdict: list[str] = field(default_factory=list)
    stages: list[StageFigures] = field(default_factory=list)
    trouble: str = ""
    stats: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ProcessFigures:
    """One process.

    Attributes:
        started: identifies the process together with `pid`; see ``processes.Process``.
        at: when this was written, in seconds since 1970.
        every_s: seconds until the next file.
        rank, ranks: of torch.distributed or torchrun, when a loader last began an epoch; 0 of 1 without them.
        version: of headrace.
        job: the newest verdict on all ranks of its job; None if there is none.
    """

    pid: int
    started: int
    at: float
    every_s: float
    rank: int
    ranks: int
    version: str
    loaders: list[LoaderFigures] = field(default_factory=list)
    job: JobVerdict | None = None

    def as_text(self) -> str:
        """Returns it as JSON."""
        return checked_json.as_text(self, FORMAT)

    @classmethod
    def of_text(cls, text: str) -> ProcessFigures:
        """Returns what `as_text` wrote.

        Raises:
            ValueError: another version of headrace wrote it, or it is damaged.
        """
        return checked_json.of_text(cls, text, FORMAT, _NESTED)


_NESTED = {"LoaderFigures": LoaderFigures, "StageFigures": StageFigures, "JobVerdict": JobVerdict}
