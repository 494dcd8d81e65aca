"""Chooses the reports about a loader by its route: of images, of gathered rows, or of several fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from headrace._engine.engine import Engine
from headrace._engine.ragged_engine import RaggedEngine
from headrace._loading.autotune.tuner_summary import Tuned, summarise
from headrace._loading.autotune.worker_tuner import why_fixed
from headrace._loading.collate.collate_call import CollateFunction
from headrace._loading.epoch.advice import find_means_of_bytes
from headrace._loading.epoch.order import OrderedBatch
from headrace._loading.native.out_transform import seed_batches
from headrace._loading.native.settings import Settings
from headrace._loading.routes.audio_route import AudioRoute
from headrace._loading.routes.choice import reasons_for_torch
from headrace._loading.routes.columns_route import ColumnsRoute
from headrace._loading.routes.epoch_runner import collate_threads
from headrace._loading.routes.fields_route import FieldsRoute
from headrace._loading.routes.image_route import ImageRoute
from headrace._loading.routes.joined_route import JoinedRoute
from headrace._loading.routes.route import Loader, NativeRoute, Route
from headrace._loading.routes.video_route import VideoRoute
from headrace._reports.loader import explanation, mixture_counts, stats, verification
from headrace._reports.loader.verification import Epoch, ReferenceLoader, Report
from headrace._reports.routes import audio_reports, columns_reports, fields_reports, joined_reports, video_reports
from headrace.pillow.recording.image_counts import ImageCounts


class _Reports(NamedTuple):
    """The functions for a kind of route.

    Attributes:
        oracle: returns the oracle's loader for an epoch, without ``out_transform``.
        verify: compares the batches of an epoch.
        explain: returns the table of a loader.
    """

    oracle: Callable[[Settings, Any, Epoch, CollateFunction | None], ReferenceLoader]
    verify: Callable[[Settings, Any, Epoch, Engine], Report]
    explain: Callable[[Settings, Any, bool], explanation.Explanation]


def _verify_images(settings: Settings, route: ImageRoute, epoch: Epoch, engine: Engine) -> Report:
    if settings.batched and isinstance(engine, RaggedEngine) and not engine.stacked:
        single = replace(settings, batched=False)
        report = verification.verify(single, route, (epoch[0], split_into_single_samples(epoch[1])), engine)
        return replace(report, batches=len(epoch[1]))
    return verification.verify(settings, route, epoch, engine)


_REPORTS: dict[type[NativeRoute], _Reports] = {
    ImageRoute: _Reports(verification.make_oracle_loader, _verify_images, explanation.explain),
    VideoRoute: _Reports(video_reports.make_oracle_loader, video_reports.verify, video_reports.explain),
    ColumnsRoute: _Reports(columns_reports.oracle, columns_reports.verify, columns_reports.explain),
    AudioRoute: _Reports(audio_reports.oracle, audio_reports.verify, audio_reports.explain),
    JoinedRoute: _Reports(joined_reports.oracle, joined_reports.verify, joined_reports.explain),
    FieldsRoute: _Reports(fields_reports.oracle, fields_reports.verify, fields_reports.explain),
}


def reference_loader(settings: Settings, route: NativeRoute, epoch: Epoch) -> ReferenceLoader:
    """Returns the oracle's loader for an epoch; its batches are what the loader hands out."""
    found = _REPORTS[type(route)].oracle(settings, route, epoch, settings.collate_fn)
    found.progress = epoch[0]
    found.out_transform = seed_batches(settings.out_transform, settings.destination.device, epoch[0])
    return found


def verify(settings: Settings, route: NativeRoute, epoch: Epoch, engine: Engine) -> Report:
    """Compares the batches of an epoch; see ``DataLoader.verify``. Closes the engine."""
    return _REPORTS[type(route)].verify(settings, route, epoch, engine)


def split_into_single_samples(batches: list[OrderedBatch]) -> list[OrderedBatch]:
    """Returns the samples of batches as batches of one."""
    return [
        OrderedBatch(batch.indices[n : n + 1], batch.occurrences[n : n + 1])
        for batch in batches
        for n in range(len(batch.indices))
    ]


def explain(settings: Settings, route: Route, deferred: ImageCounts | None, verbose: bool) -> explanation.Explanation:
    """Returns the table of a loader.

    Args:
        deferred: the images of torch's newest epoch so far; None if images are not opened deferred.
        verbose: see ``DataLoader.explain``.
    """
    if isinstance(route, NativeRoute):
        table = _REPORTS[type(route)].explain(settings, route, verbose)
    else:
        table = explanation.explain_torch(settings, reasons_for_torch(settings), deferred)
    mistake = find_means_of_bytes(settings.dataset)
    doubts = [] if mistake is None else [explanation.Part("Normalize", "see", mistake)]
    choices = explanation.explain_choices(settings, summarise_tuning(settings, route))
    mixture = mixture_counts.explain_mixture(settings)
    return explanation.Explanation((*table.lines, *mixture, *doubts, *choices))


def summarise_tuning(settings: Settings, route: Route) -> Tuned | None:
    """Returns what the loader chose itself; None if its numbers are given."""
    return summarise(settings.tuner, "" if route.native else why_fixed(settings))


def collect(loader: Loader, judged: bool = True) -> stats.Stats:
    """Returns the statistics of the newest epoch; see `stats.collect`."""
    return replace(_collect_by_route(loader, judged), mixture=mixture_counts.count_handed_out(loader))


def _collect_by_route(loader: Loader, judged: bool) -> stats.Stats:
    settings, route, runner = loader._settings(), loader._route, loader._runner
    chosen = summarise_tuning(settings, route)
    if not isinstance(route, NativeRoute):
        epochs = loader._torch_epochs
        found = stats.stats_of_torch(
            settings.num_workers,
            epochs.images,
            epochs.pace,
            judged,
            epochs.made_from_records,
            making=epochs.making,
            on_device=settings.destination.way != "memory",
        )
        return replace(found, tuned=chosen, entry_points=epochs.entries)
    far = route.source.ahead_bytes > 0
    helpable = isinstance(route, ImageRoute) and not route.why_no_helpers(settings)
    collating = collate_threads(settings, route)
    found = stats.collect(runner.engine, runner.progress, settings, collating, far, judged, helpable=helpable)
    return replace(found, tuned=chosen, entry_points=runner.entries)
