"""Gives a loader that torch delivers for back to native threads, once replaced functions are the libraries' own."""

from __future__ import annotations

from typing import Any

from headrace._loading.epoch.epochs import Epochs
from headrace._loading.native import routes
from headrace._loading.native.routes import Batches, Fallback, Route


def given_back(loader: Any, route: Fallback) -> Route:
    """Returns the route of the loader's next epoch: native threads, if the reason has passed.

    An epoch that torch has begun, or that a state was loaded for, goes on with torch. So do persistent workers, which
    hold the functions that were there when they were forked.
    """
    if not route.passing or loader._iterator is not None or loader._torch_epochs.goes_on(loader):
        return route
    settings = loader._settings()
    batches = Batches.now(settings)
    now = routes.decide(
        settings.dataset,
        batches,
        settings.collate_fn,
        settings.worker_init_fn,
        settings.fixed_workers,
        settings,
    )
    if isinstance(now, Fallback):
        return now
    now.check(settings)
    epochs = vars(loader).get("_epochs")
    if epochs is None:
        kept = settings.persistent_workers
        epochs = loader._epochs = Epochs(loader._ordered(), len(now.source), loader.seed, keeps_base_seed=kept)
    else:
        epochs.follow(loader._ordered(), len(now.source))
    epochs.go_on(loader._torch_epochs.upcoming(loader))
    return now
