"""Chooses the reports about a loader by its route: of images, of gathered rows, or of several fields."""

from __future__ import annotations

from dataclasses import replace

from headrace._engine.engine import Engine
from headrace._engine.sized_engine import SizedEngine
from headrace._loading.autotune.told import Tuned, told
from headrace._loading.autotune.workers import why_fixed
from headrace._loading.epoch.order import OrderedBatch
from headrace._loading.fallback.epochs import TorchEpochs
from headrace._loading.native.gathering import Gathered
from headrace._loading.native.routing import Fallback, Route, Threaded, reasons
from headrace._loading.native.runner import Runner, collate_threads
from headrace._loading.native.settings import Settings
from headrace._loading.native.stacking import Stacked
from headrace._reports.loader import gathered, report, stacked, stats, verification
from headrace._reports.loader.verification import Epoch, ReferenceLoader, Report
from headrace.pillow.image_counts import ImageCounts


def reference_loader(settings: Settings, route: Threaded, epoch: Epoch) -> ReferenceLoader:
    """Returns the oracle's loader for an epoch; its batches are what the loader hands out."""
    if isinstance(route, Gathered):
        return gathered.reference_loader(settings, epoch)
    if isinstance(route, Stacked):
        return stacked.reference_loader(settings, route, epoch)
    return verification.reference_loader(settings, route, epoch)


def verify(settings: Settings, route: Threaded, epoch: Epoch, engine: Engine) -> Report:
    """Compares the batches of an epoch; see ``DataLoader.verify``. Closes the engine."""
    if isinstance(route, Gathered):
        return gathered.verify(settings, route, epoch, engine)
    if isinstance(route, Stacked):
        return stacked.verify(settings, route, epoch, engine)
    if settings.batched and isinstance(engine, SizedEngine) and not engine.stacked:
        single = replace(settings, batched=False)
        report = verification.verify(single, route, (epoch[0], one_by_one(epoch[1])), engine)
        return replace(report, batches=len(epoch[1]))
    return verification.verify(settings, route, epoch, engine)


def one_by_one(batches: list[OrderedBatch]) -> list[OrderedBatch]:
    """Returns the samples of batches as batches of one."""
    return [
        OrderedBatch(batch.indices[n : n + 1], batch.occurrences[n : n + 1])
        for batch in batches
        for n in range(len(batch.indices))
    ]


def explain(settings: Settings, route: Route, deferred: ImageCounts | None) -> report.Explanation:
    """Returns the table of a loader.

    Args:
        deferred: the images of torch's newest epoch so far; None if images are not opened deferred.
    """
    if isinstance(route, Fallback):
        table = report.explain_torch(settings, reasons(settings), deferred)
    elif isinstance(route, Gathered):
        table = gathered.explain(settings, route)
    elif isinstance(route, Stacked):
        table = stacked.explain(settings, route)
    else:
        table = report.explain(settings, route)
    return report.Explanation((*table.lines, *report.chosen(settings, tuned(settings, route))))


def tuned(settings: Settings, route: Route) -> Tuned | None:
    """Returns what the loader chose itself; None if its numbers are given."""
    return told(settings.tuner, why_fixed(settings) if isinstance(route, Fallback) else "")


def collect(settings: Settings, route: Threaded, runner: Runner, judged: bool = True) -> stats.Stats:
    """Returns the statistics of the newest epoch; see `stats.collect`."""
    far = route.source.ahead_bytes > 0
    found = stats.collect(runner.engine, runner.progress, settings, collate_threads(settings, route), far, judged)
    return replace(found, tuned=tuned(settings, route), entry_points=runner.entries)


def collect_torch(settings: Settings, route: Fallback, epochs: TorchEpochs, judged: bool = True) -> stats.Stats:
    """Returns the statistics of the newest epoch that torch delivered; see `stats.collect`."""
    found = stats.of_torch(settings.num_workers, epochs.images, epochs.pace, judged)
    return replace(found, tuned=tuned(settings, route))
