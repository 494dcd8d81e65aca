"""What a loader says of a mixture of datasets: how many samples of each an epoch has, and has had so far."""

from __future__ import annotations

import copy

from headrace._loading.epoch.sampler_setup import order_of
from headrace._loading.native.settings import Settings
from headrace._loading.routes.route import Loader, NativeRoute
from headrace._reports.loader.explanation import Part
from headrace.sampler.mixture import MixtureSampler


def count_handed_out(loader: Loader) -> dict[str, int]:
    """Returns how many samples of each dataset the newest epoch has had, on all ranks together, by name; empty if the
    loader's order is not that of a mixture."""
    order = order_of(loader.sampler, loader.batch_sampler, 0, loader.seed)
    if not isinstance(order.items, MixtureSampler):
        return {}
    sampler, each = copy.copy(order.items), order.cut.stride
    if isinstance(loader._route, NativeRoute):
        progress = loader._runner.progress
        epoch, items = (0, 0) if progress is None else (progress.epoch, progress.offset + progress.position * each)
    else:
        epoch, batches, _ = loader._torch_epochs.newest_position
        items = loader._torch_epochs.newest_offset + batches * each
    sampler.adopt(epoch)
    return sampler.counts_before(min(items, len(sampler)))


def explain_mixture(settings: Settings) -> list[Part]:
    """Returns the shares of the datasets in the epoch of the loader's sampler; nothing without a mixture."""
    sampler = order_of(settings.sampler, settings.batch_sampler, 0, settings.seed).items
    if not isinstance(sampler, MixtureSampler):
        return []
    counts = sampler.data_source.counts(sampler.epoch)
    each = zip(sampler.data_source.names, counts.samples, strict=True)
    shares = ", ".join(f"{name} {count:,} ({count / counts.total:.1%})" for name, count in each)
    order = "each in a random order" if sampler.shuffle else "each in its own order"
    return [Part("mixture", "native", f"{counts.total:,} samples an epoch, {order}: {shares}")]
