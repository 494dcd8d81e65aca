"""Chooses the reports about a loader by its route: of images, of gathered rows, or of several fields."""

from __future__ import annotations

from dataclasses import replace

from headrace._engine.engine import Engine
from headrace._engine.ragged_engine import RaggedEngine
from headrace._loading.autotune.tuner_summary import Tuned, summarise
from headrace._loading.autotune.worker_tuner import why_fixed
from headrace._loading.epoch.order import OrderedBatch
from headrace._loading.fallback.torch_epochs import TorchEpochs
from headrace._loading.native.columns_route import Gathered
from headrace._loading.native.epoch_runner import Runner, collate_threads
from headrace._loading.native.fields_route import Stacked
from headrace._loading.native.routes import Fallback, Route, Threaded, reasons
from headrace._loading.native.settings import Settings
from headrace._reports.loader import columns_reports, explanation, fields_reports, stats, verification
from headrace._reports.loader.verification import Epoch, ReferenceLoader, Report
from headrace.pillow.image_counts import ImageCounts


def reference_loader(settings: Settings, route: Threaded, epoch: Epoch) -> ReferenceLoader:
    """Returns the oracle's loader for an epoch; its batches are what the loader hands out."""
    if isinstance(route, Gathered):
        return columns_reports.reference_loader(settings, epoch)
    if isinstance(route, Stacked):
        return fields_reports.reference_loader(settings, route, epoch)
    return verification.reference_loader(settings, route, epoch)


def verify(settings: Settings, route: Threaded, epoch: Epoch, engine: Engine) -> Report:
    """Compares the batches of an epoch; see ``DataLoader.verify``. Closes the engine."""
    if isinstance(route, Gathered):
        return columns_reports.verify(settings, route, epoch, engine)
    if isinstance(route, Stacked):
        return fields_reports.verify(settings, route, epoch, engine)
    if settings.batched and isinstance(engine, RaggedEngine) and not engine.stacked:
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


def explain(settings: Settings, route: Route, deferred: ImageCounts | None) -> explanation.Explanation:
    """Returns the table of a loader.

    Args:
        deferred: the images of torch's newest epoch so far; None if images are not opened deferred.
    """
    if isinstance(route, Fallback):
        table = explanation.explain_torch(settings, reasons(settings), deferred)
    elif isinstance(route, Gathered):
        table = columns_reports.explain(settings, route)
    elif isinstance(route, Stacked):
        table = fields_reports.explain(settings, route)
    else:
        table = explanation.explain(settings, route)
    return explanation.Explanation((*table.lines, *explanation.chosen(settings, tuned(settings, route))))


def tuned(settings: Settings, route: Route) -> Tuned | None:
    """Returns what the loader chose itself; None if its numbers are given."""
    return summarise(settings.tuner, why_fixed(settings) if isinstance(route, Fallback) else "")


def collect(settings: Settings, route: Threaded, runner: Runner, judged: bool = True) -> stats.Stats:
    """Returns the statistics of the newest epoch; see `stats.collect`."""
    far = route.source.ahead_bytes > 0
    found = stats.collect(runner.engine, runner.progress, settings, collate_threads(settings, route), far, judged)
    return replace(found, tuned=tuned(settings, route), entry_points=runner.entries)


def collect_torch(settings: Settings, route: Fallback, epochs: TorchEpochs, judged: bool = True) -> stats.Stats:
    """Returns the statistics of the newest epoch that torch delivered; see `stats.collect`."""
    found = stats.of_torch(settings.num_workers, epochs.images, epochs.pace, judged)
    return replace(found, tuned=tuned(settings, route))
