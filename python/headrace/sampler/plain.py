"""torch's two plain samplers, of an order that follows from a seed, and told the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sized

import torch
from torch.utils.data import RandomSampler, SequentialSampler

from headrace.randomness.draws import epoch_seed
from headrace.sampler.seeded import Seeded


def permutation(length: int, seed: int, epoch: int) -> list[int]:
    """The order of an epoch, as torch's RandomSampler draws it."""
    generator = torch.Generator("cpu").manual_seed(epoch_seed(seed, epoch))
    order: list[int] = torch.randperm(length, generator=generator, device="cpu").tolist()
    return order


class SeededRandomSampler(Seeded, RandomSampler):
    """What ``DataLoader(shuffle=True, seed=seed)`` has as its sampler."""

    def __init__(self, data_source: Sized, seed: int) -> None:
        RandomSampler.__init__(self, data_source)
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        return iter(permutation(len(self.data_source), self.seed, self.epoch))


class SeededSequentialSampler(Seeded, SequentialSampler):
    """What ``DataLoader(seed=seed)`` has as its sampler: who knows the epoch knows the augmentation."""
