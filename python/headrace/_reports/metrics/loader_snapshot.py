"""Reads what a loader has done, from a thread that is not its consumer's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace._base.safe_exceptions import named_message_of
from headrace._engine.counters.epoch_timing import EpochTiming
from headrace._reports.metrics.totals import Totals


@dataclass(frozen=True)
class Look:
    """What a loader has done in its newest epoch; the attributes without a comment are those of `LoaderFigures`.

    Attributes:
        quiet_s: seconds since it handed out a batch.
        stats: its ``Stats``; None where these cannot be made, as `trouble` says.
        totals: of this epoch.
    """

    dataset: str
    samples: int | None
    route: str
    workers: int
    epoch: int = 0
    batch: int = 0
    batches: int = -1
    ended: bool = False
    counts_samples: bool = False
    quiet_s: float = 0.0
    stats: Any = None
    totals: Totals = field(default_factory=Totals)
    trouble: str = ""


def pace_of(loader: Any) -> EpochTiming | None:
    """Returns the pace of a loader's newest epoch; None before the first."""
    if loader.native:
        progress = loader._runner.progress
        return None if progress is None else progress.pace
    return loader._torch_epochs.pace  # type: ignore[no-any-return]


def look_at(loader: object, length: int, judged: bool) -> Look:
    """Returns what a loader has done in its newest epoch. Never raises; errors go to `trouble`.

    Args:
        length: number of batches of a whole epoch; -1: not known.
        judged: whether the verdict is wanted, which takes most of the time.
    """
    name = type(getattr(loader, "dataset", None)).__name__
    try:
        return _look_at(loader, name, length, judged)
    except Exception as error:  # of the user's dataset, or of a loader that is being changed
        return Look(name, None, "", 0, trouble=named_message_of(error))


def _look_at(loader: Any, name: str, length: int, judged: bool) -> Look:
    try:
        samples = len(loader.dataset)
    except TypeError:  # a dataset without a length
        samples = None
    pace, stats, native = pace_of(loader), loader._stats(judged), loader.native
    about = (name, samples, loader.route, stats.threads)
    if pace is None:
        return Look(*about)
    if native:
        progress = loader._runner.progress
        position, counted = (progress.epoch, progress.position, progress.finished), stats.samples
        failed, length = len(loader.errors), progress.batches
    else:
        position, counted, failed = (
            loader._torch_epochs.newest_position,
            stats.waits.batches * (loader.batch_size or 0),
            0,
        )
    epoch, batch, ended = position
    return Look(
        *about,
        epoch,
        batch,
        length,
        ended,
        native or loader.batch_size is not None,
        pace.quiet_ns() / 1e9,
        stats,
        Totals.of_epoch(stats, counted, failed),
    )
