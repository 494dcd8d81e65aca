"""Reports about a loader of images of joined datasets with different transforms: verification and explanation."""

from __future__ import annotations

import numpy as np
import torch

from headrace._base.errors import VerificationError
from headrace._base.types import Array
from headrace._engine.engine import Engine
from headrace._loading.collate.collate_call import CollateFunction, is_default
from headrace._loading.native.settings import Settings
from headrace._loading.routes.joined_route import JoinedRoute
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._reports.loader import verification
from headrace._reports.loader.explanation import (
    Explanation,
    Part,
    explain_collation,
    explain_output,
    explain_ranks,
    explain_reading,
    explain_seeding,
    explain_steps,
    explain_targets,
)
from headrace.datasets.sources import checked_table


class _JoinedReference(verification.FaultTolerantReference):
    """The oracle's samples, each by the recipe of its dataset."""

    def __init__(self, route: JoinedRoute, seed: int, epoch: int) -> None:
        super().__init__(route.source, route.routes[0].recipe, seed, epoch)
        self._route = route
        self._draws = Draws(route.draws, seed)

    def made_of(self, index: int, draws_row: Array) -> object:
        number = int(self._route.product.numbers(np.array([index]))[0])
        recipe = self._route.routes[number].recipe
        return reference_sample(self.source.image(index), recipe, draws_row[self._route.columns[number]])


def oracle(
    settings: Settings, route: JoinedRoute, epoch: verification.Epoch, collate_fn: CollateFunction | None
) -> verification.ReferenceLoader:
    """Returns the oracle's loader for an epoch, without `out_transform`."""
    progress, order = epoch
    dataset = _JoinedReference(route, progress.seed, progress.epoch)
    dataset.on_error = settings.on_error
    keys = [list(zip(batch.indices.tolist(), batch.occurrences.tolist(), strict=True)) for batch in order]
    if collate_fn is not None and not is_default(collate_fn, settings.batched):
        dataset.kinds = route.kinds
    return verification.collated_by(collate_fn, dataset, keys, settings.batched, progress, verification.collate_made)


def verify(settings: Settings, route: JoinedRoute, epoch: verification.Epoch, engine: Engine) -> verification.Report:
    """Compares the batches of an epoch; see ``DataLoader.verify``. Closes the engine."""
    native = verification.compared_iterator(settings, route, checked_table(route.source), epoch, engine)
    batches = samples = size = 0
    try:
        for ours, theirs in verification.paired_batches(native, oracle(settings, route, epoch, None)):
            if route.source.has_targets:
                if not verification.are_equal_values(ours[1], theirs[1]):
                    raise VerificationError(f"batch {batches}: targets differ: {ours[1]!r} against {theirs[1]!r}")
                ours, theirs = ours[0], theirs[0]
            if ours.dtype != theirs.dtype or not torch.equal(ours, theirs):
                indices = epoch[1][batches].indices
                differ = (ours != theirs).reshape(len(indices), -1).any(dim=1)
                index = int(indices[int(differ.nonzero()[0])])
                where = route.source.location(index)
                raise VerificationError(f"batch {batches}: sample {index} ({where}) differs")
            size += ours.nbytes
            samples += len(epoch[1][batches].indices)
            batches += 1
    finally:
        native.close()
    return verification.Report(batches, samples, size)


def explain(settings: Settings, route: JoinedRoute, verbose: bool) -> Explanation:
    """Returns the table of a loader: the steps of each transform, with the datasets that have it."""
    source = route.source
    lines = [*explain_reading(settings, source, settings.dataset)]
    for number, one in enumerate(route.routes):
        whose = [str(place + 1) for place, which in enumerate(route.route_of) if which == number]
        datasets = f"dataset {whose[0]}" if len(whose) == 1 else f"datasets {', '.join(whose)}"
        lines.append(Part("transform", "native", f"of {datasets}, in the same threads and batches:"))
        lines += explain_steps(one.recipe, verbose)
    lines += [
        *explain_targets(source),
        *explain_collation(settings),
        *explain_seeding(settings),
        *explain_ranks(settings),
    ]
    return Explanation((*lines, *explain_output(settings, route.routes[0].recipe, verbose)))
