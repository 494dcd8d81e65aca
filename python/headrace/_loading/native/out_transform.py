"""Calls the user's function on finished batches, with random numbers that follow from seed, epoch and batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from headrace._loading.epoch.checkpoint import Progress
from headrace._loading.mixup import recognition
from headrace._loading.native.loader_attributes import OutTransform
from headrace._recipe.draws.draws import BatchUse, batch_uniform
from headrace._recipe.draws.python_randomness import sample_randomness


@dataclass(frozen=True)
class SeededBatches:
    """Calls `function` on the batches of one epoch.

    Args:
        device: device of the batches.
        progress: progress of the epoch; its seed and epoch number seed the random numbers.
        owned: whether nothing else refers to a batch, so that MixUp and CutMix may overwrite it.
    """

    function: OutTransform
    device: torch.device
    progress: Progress
    owned: bool = False

    def __call__(self, batch: Any, number: int) -> Any:
        """Returns ``function(batch)``; `number` is the batch's number in the epoch."""
        uniform = batch_uniform(self.progress.seed, self.progress.epoch, number, BatchUse.OUT_TRANSFORM)
        mixing = recognition.mixing_of_batch(self.function) if self.owned else None
        with sample_randomness(uniform, process_wide=True, device=self.device):
            return (mixing or self.function)(batch)


class TransformedBatches:
    """Applies `function` to the batches of torch's iterator, without seeding any generator."""

    def __init__(self, batches: Iterator[object], function: OutTransform) -> None:
        self._batches, self._function = batches, function

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> Any:
        return self._function(next(self._batches))

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]  # torch's iterators have a length


def seed_batches(
    function: OutTransform | None, device: torch.device, progress: Progress, *, owned: bool = False
) -> SeededBatches | None:
    """Returns `function` with seeded random numbers for the batches of an epoch; None if `function` is None."""
    return None if function is None else SeededBatches(function, device, progress, owned)
