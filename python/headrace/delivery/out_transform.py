"""The user's function on finished batches; what it draws follows from seed, epoch and batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from headrace.epochs.state import Progress
from headrace.randomness.draws import batch_uniform
from headrace.randomness.python_randomness import sample_randomness

OutTransform = Callable[[Any], Any]


@dataclass(frozen=True)
class SeededBatches:
    """Calls `function` on the batches of one epoch.

    Args:
        device: where the batches are.
        progress: of the epoch, whose seed and number count.
    """

    function: OutTransform
    device: torch.device
    progress: Progress

    def __call__(self, batch: Any, number: int) -> Any:
        """`number`: of the batch in its epoch."""
        uniform = batch_uniform(self.progress.seed, self.progress.epoch, number)
        with sample_randomness(uniform, process_wide=True, device=self.device):
            return self.function(batch)


class TransformedBatches:
    """An iterator of torch's whose batches go through `function`, with whatever random numbers come."""

    def __init__(self, batches: Any, function: OutTransform) -> None:
        self._batches, self._function = batches, function

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._function(next(self._batches))

    def __len__(self) -> int:
        return len(self._batches)


def seeded(function: OutTransform | None, device: torch.device, progress: Progress) -> SeededBatches | None:
    """An `out_transform` for the batches of an epoch, on their device; None where there is none."""
    return None if function is None else SeededBatches(function, device, progress)
