"""Follows one loader through its epochs. Threads that publish read it; its consumer reports when an epoch begins."""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import replace
from typing import Any

from torch.utils.data import IterableDataset

from headrace._engine.counters.epoch_timing import EpochTiming
from headrace._reports.metrics.loader_snapshot import Look, look_at, pace_of
from headrace._reports.metrics.process_figures import LoaderFigures, StageFigures
from headrace._reports.metrics.rolling_rate import Recent
from headrace._reports.metrics.totals import Totals
from headrace._reports.ranks.rank_figures import Load


class Followed:
    """One loader. It does not keep the loader alive.

    Attributes:
        number: see `LoaderFigures`.
        loader: a weak reference.
        load: what it had done when `figures` was last called.
    """

    def __init__(self, loader: object, number: int) -> None:
        self.number, self.loader = number, weakref.ref(loader)
        self._lock = threading.Lock()  # an epoch does not begin while totals are added
        self._before, self._newest = Totals(), Totals()  # of the epochs before; of the newest
        self._pace: weakref.ref[EpochTiming] | None = None  # of the newest
        self._recent = Recent(of_samples=False)
        self._length = -1
        self.load = Load()

    def begins(self, loader: object) -> None:
        """Called in the consumer's thread before an epoch begins: what the one before did is final."""
        length = _length_of(loader)
        with self._lock:
            self._look(loader, judged=False)
            self._length = length

    def look(self) -> tuple[Look, Totals] | None:
        """Returns the newest epoch, and the totals of all; None if the loader is gone."""
        loader = self.loader()
        if loader is None:
            return None
        with self._lock:
            return self._look(loader, judged=True), self._before.plus(self._newest)

    def _look(self, loader: object, judged: bool) -> Look:
        look = look_at(loader, self._length, judged)
        if look.trouble:
            return look
        pace = pace_of(loader)
        if pace is not None and (self._pace is None or self._pace() is not pace):
            self._before, self._newest = self._before.plus(self._newest), Totals()
            self._pace = weakref.ref(pace)
        # The times of some stages are estimates that may fall; a counter must not.
        self._newest = look.totals.at_least(self._newest)
        return look

    def figures(self) -> LoaderFigures | None:
        """Returns the loader's figures; None if it is gone. One thread calls this, at regular times."""
        found = self.look()
        if found is None:
            return None
        look, totals = found
        if self._recent.of_samples != look.counts_samples:
            self._recent = Recent(look.counts_samples)
        if not look.trouble:
            self._recent.add(time.monotonic(), totals)
            self.load = Load(
                totals.batches,
                totals.worked_s,
                totals.waited_s,
                totals.stage_s,
                look.stats is not None and look.stats.remote is not None,
                "" if look.stats is None else look.stats.bottleneck,
            )
        seconds, speed, working = self._recent.mean()
        figures = LoaderFigures(
            self.number,
            look.dataset,
            look.samples,
            look.route,
            look.workers,
            look.epoch,
            look.batch,
            look.batches,
            look.ended,
            "samples" if look.counts_samples else "batches",
            seconds,
            speed,
            working,
            self._recent.speeds,
            quiet_s=look.quiet_s,
            trouble=look.trouble,
        )
        return figures if look.stats is None else _add_stats(figures, look)


def _add_stats(figures: LoaderFigures, look: Look) -> LoaderFigures:
    stats = look.stats
    busy = sum(one.busy_s for one in stats.stages) or 1.0
    return replace(
        figures,
        step_ms=[stats.steps.p50_ms, stats.steps.p99_ms],
        wait_ms=[stats.waits.p50_ms, stats.waits.p99_ms],
        bytes_read=stats.bytes_read,
        failed=look.totals.failed,
        bottleneck=stats.bottleneck,
        verdict=str(stats.verdict).splitlines(),
        stages=[
            StageFigures(one.name, one.busy_s / busy, one.ms_per_item, one.p50_ms, one.p99_ms) for one in stats.stages
        ],
        stats=stats.as_dict(),
    )


def _length_of(loader: Any) -> int:
    """Returns the number of batches of an epoch; -1: not known. torch notes a request for the
    length of an iterable dataset, and warns of it, so this does not request it."""
    if loader.native or isinstance(loader.dataset, IterableDataset):
        return -1
    try:
        return len(loader)
    except (TypeError, NotImplementedError):  # of a sampler without a length
        return -1
