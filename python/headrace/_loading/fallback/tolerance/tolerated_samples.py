"""`on_error` where torch delivers: samples that a dataset of a program's own cannot make are left out or replaced.

torch's fetcher gets the samples from `TolerantDataset`, which catches the exceptions of ``dataset[i]``, and has the
pixels of deferred images made there, so that their errors are the sample's; those of streams from `TolerantStream`.
`TolerantCollation` passes on what is left, and its batch carries the errors to the main process, where
`tolerated_batches` counts them.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import Dataset

from headrace._base.errors import SampleError
from headrace._base.types import Function
from headrace._loading.fallback.deferred_workers import make_values
from headrace._loading.fallback.tolerance.attempts import Attempted, StandIn, ToleratedBatch, describe_failure
from headrace._recipe.draws.python_randomness import process_generator_states, restore_process_generators
from headrace.pillow.recording.image_counts import in_force


class TolerantDataset(StandIn, Dataset[Any]):
    """Stands for a map-style dataset; makes single samples only, since of several it is not known which one fails.

    Args:
        replaces: whether the next sample takes the place of one that failed.
    """

    def __init__(self, dataset: Any, *, replaces: bool) -> None:
        self.dataset, self._replaces = dataset, replaces

    def __getitem__(self, index: Any) -> object:
        """Returns the sample, or `Attempted` if one has failed."""
        errors: list[SampleError] = []
        for _ in range(len(self.dataset) if self._replaces else 1):
            try:
                made = self._make(index)
            except Exception as error:
                errors.append(self._describe(error, index))
                if self._replaces:
                    index = (index + 1) % len(self.dataset)
            else:
                return Attempted(made, errors, True) if errors else made
        return Attempted(None, errors, False)

    def _make(self, index: Any) -> object:
        """Returns the sample. One that fails with deferred images, whose errors come late, is made again without: its
        error and its random numbers are then the libraries'."""
        if in_force.here() is None:
            return self.dataset[index]
        before, asked = process_generator_states(), in_force.asked
        try:
            made = self.dataset[index]
            make_values(made)
        except Exception:
            if in_force.asked == asked:  # no image was opened
                raise
        else:
            return made
        restore_process_generators(before)
        return in_force.call_as_usual(lambda: self.dataset[index])

    def _describe(self, error: Exception, index: Any) -> SampleError:
        number = index if isinstance(index, int) else -1
        location = type(self.dataset).__name__ if number == index else f"{type(self.dataset).__name__}, {index!r}"
        return describe_failure(error, number, location)


class TolerantCollation:
    """Calls collate_fn with the samples that could be made.

    Args:
        batched: whether it gets lists of samples.
    """

    def __init__(self, collate_fn: Function, *, batched: bool) -> None:
        self._collate_fn, self._batched = collate_fn, batched

    def __call__(self, data: Any) -> object:
        """Returns the batch, or a `ToleratedBatch` if a sample has failed."""
        samples = data if self._batched else [data]
        if not any(isinstance(one, Attempted) for one in samples):
            return self._collate_fn(data)
        errors = [error for one in samples if isinstance(one, Attempted) for error in one.errors]
        left = [
            one.sample if isinstance(one, Attempted) else one
            for one in samples
            if not isinstance(one, Attempted) or one.is_made
        ]
        if not left:
            return ToleratedBatch(None, errors, True)
        return ToleratedBatch(self._collate_fn(left if self._batched else left[0]), errors, False)
