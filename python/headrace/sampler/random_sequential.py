"""torch's RandomSampler and SequentialSampler with a seed and an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sized

import torch
from torch.utils.data import RandomSampler, SequentialSampler

from headrace._recipe.draws.draws import epoch_seed
from headrace._recipe.draws.seeded_sampler import Seeded


def random_order(length: int, seed: int, epoch: int) -> list[int]:
    """Returns the order of an epoch, drawn as torch's RandomSampler does from a generator seeded by (seed, epoch)."""
    generator = torch.Generator("cpu").manual_seed(epoch_seed(seed, epoch))
    order: list[int] = torch.randperm(length, generator=generator, device="cpu").tolist()
    return order


class SeededRandomSampler(Seeded, RandomSampler):
    """The sampler of ``DataLoader(shuffle=True, seed=seed)``."""

    def __init__(self, data_source: Sized, seed: int) -> None:
        RandomSampler.__init__(self, data_source)
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        return iter(random_order(len(self.data_source), self.seed, self.epoch))


class SeededSequentialSampler(Seeded, SequentialSampler):
    """The sampler of ``DataLoader(seed=seed)``: it carries the epoch, which the augmentation follows from."""
