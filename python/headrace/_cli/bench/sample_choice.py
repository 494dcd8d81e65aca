"""Chooses the samples that are timed: as many as fit the time, without those that no loader can decode."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from torch.utils.data import Subset

from headrace._base.errors import HeadraceError, SampleError
from headrace.loader import DataLoader

_PROBED_S = 0.5
_FEWEST_BATCHES = 8  # of an epoch


class UnusableError(HeadraceError, ValueError):
    """The dataset cannot be timed; the message is one sentence."""


def measure_python_speed(dataset: Any) -> float:
    """Returns how many samples a second ``dataset[i]`` makes in this thread."""
    tried, begin = 0, time.perf_counter()
    for index in np.random.default_rng(0).permutation(min(len(dataset), 10_000)).tolist():
        try:
            dataset[index]
        except Exception:  # counted in `timed`
            continue
        tried += 1
        if time.perf_counter() - begin > _PROBED_S:
            break
    return max(1, tried) / (time.perf_counter() - begin)


def choose_samples(dataset: Any, number: int) -> Any:
    """Returns `number` samples of the dataset, drawn once for all loaders; the dataset itself if it has no more."""
    if number >= len(dataset):
        return dataset
    return Subset(dataset, np.sort(np.random.default_rng(0).permutation(len(dataset))[:number]).tolist())


def number_of_samples(speed: float, workers: int, seconds: float, batch_size: int) -> int:
    """Returns the number of samples that Python makes in this time, in whole batches, and at least a few."""
    batches = max(_FEWEST_BATCHES, round(speed * workers * seconds / batch_size))
    return batches * batch_size


def drop_unreadable_samples(dataset: Any, batch_size: int, workers: int) -> tuple[Any, list[SampleError]]:
    """Returns the dataset without the samples that cannot be made, and the errors of these.

    Where torch's loader delivers, the dataset is returned as it is.

    Raises:
        UnusableError: no sample can be made.
    """
    if not DataLoader(dataset, batch_size).native:
        return dataset, []
    loader = DataLoader(dataset, batch_size, num_workers=workers, seed=0, on_error="skip", max_errors=None)
    for _ in loader:
        pass
    errors = loader.errors
    loader.close()
    if not errors:
        return dataset, []
    if len(errors) == len(dataset):
        raise UnusableError(
            f"none of the {len(errors)} samples can be decoded; the first: {errors[0].location}: {errors[0].reason}"
        )
    broken = {error.index for error in errors}
    return Subset(dataset, [index for index in range(len(dataset)) if index not in broken]), errors
