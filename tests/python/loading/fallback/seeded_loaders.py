"""Loaders with seed= whose samples draw random numbers, and which torch delivers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, RandomSampler, Subset

from headrace import DataLoader
from headrace import sampler as samplers
from stateful_datasets import Deck, Stepping

COUNT = 11


def drawn() -> tuple[float, ...]:
    """Numbers from the three generators; normal ones use the halves that a generator keeps."""
    return (
        *(random.random(), random.gauss(0, 1)),
        *(np.random.rand(), np.random.randn()),  # noqa: NPY002 - a user's choice
        *(float(torch.rand(())), float(torch.randn(()))),
    )


class Noise(Dataset[Any]):
    """Yields the index, and numbers drawn once or several times, so that samples would shift one another."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: Any) -> Any:
        for _ in range(int(torch.randint(3, ()))):
            drawn()
        return index, drawn()


class Whole(Noise):
    """Makes whole batches."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        assert type(indices) is list
        return [(index, drawn()) for index in indices]


class Stateful(Noise):
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert state == {}


class Repeating(Deck):
    """A sampler with a state that yields four indices again and again."""

    def __iter__(self) -> Iterator[int]:
        return (index % 4 for index in super().__iter__())


def listed(samples: Any) -> Any:
    return samples


def drawing(samples: Any) -> Any:
    return samples, drawn()


LOADERS: dict[str, Callable[..., DataLoader]] = {
    "in order": lambda **more: DataLoader(Noise(), 3, seed=5, collate_fn=listed, **more),
    "shuffled": lambda **more: DataLoader(Noise(), 3, True, seed=5, collate_fn=drawing, **more),
    "one by one": lambda **more: DataLoader(Noise(), None, True, seed=5, **more),
    "with repetitions": lambda **more: DataLoader(
        Noise(),
        3,
        sampler=RandomSampler(range(COUNT), True, 17, torch.Generator().manual_seed(1)),
        seed=5,
        collate_fn=drawing,
        **more,
    ),
    "from the default generator": lambda **more: DataLoader(
        Noise(), 3, sampler=RandomSampler(range(COUNT)), seed=5, collate_fn=drawing, **more
    ),
    "batches of one's own": lambda **more: DataLoader(
        Noise(),
        batch_sampler=list[Any]([[1, 2], (3, 1), torch.tensor([4, 5]), np.array([6]), [1]]),
        seed=5,
        collate_fn=drawing,
        **more,
    ),
    "keys": lambda **more: DataLoader(
        Noise(),
        batch_sampler=[["a", ("b", 2)], [None, b"c", 1.5], [(3, 224)], [(3, 192), "a"]],
        seed=5,
        collate_fn=listed,
        **more,
    ),
    "lists as indices": lambda **more: DataLoader(Noise(), None, sampler=[[1, 2], [3], [1, 2]], seed=5, **more),
    "whole batches": lambda **more: DataLoader(Whole(), 3, True, seed=5, collate_fn=drawing, **more),
    "a subset": lambda **more: DataLoader(Subset(Noise(), range(2, 9)), 3, True, seed=5, collate_fn=drawing, **more),
    "a subset of it": lambda **more: DataLoader(Subset(Whole(), range(2, 9)), 3, seed=5, collate_fn=listed, **more),
    "a dataset with a state": lambda **more: DataLoader(Stateful(), 3, True, seed=5, collate_fn=drawing, **more),
    "one by one with a state": lambda **more: DataLoader(Stateful(), None, True, seed=5, **more),
    "a sampler with a state": lambda **more: DataLoader(
        Noise(), 3, sampler=Deck(COUNT), seed=5, collate_fn=drawing, **more
    ),
    "one with repetitions": lambda **more: DataLoader(
        Noise(), 3, sampler=Repeating(COUNT), seed=5, collate_fn=drawing, **more
    ),
    "an iterator with a state": lambda **more: DataLoader(
        Noise(), 3, sampler=Stepping(), seed=5, collate_fn=drawing, **more
    ),
    "a sampler that jumps": lambda **more: DataLoader(
        Noise(), 3, sampler=samplers.PermutationSampler(range(COUNT), seed=1), seed=5, collate_fn=drawing, **more
    ),
    "ranks": lambda **more: DataLoader(Noise(), 2, True, seed=5, rank=1, world_size=2, collate_fn=drawing, **more),
}


def comparable(batches: Any) -> list[str]:
    return [repr(batch) for batch in batches]


def samples_of(*loaders: Any) -> dict[Any, list[Any]]:
    """The random numbers of each index, in the order in which they came."""
    found: dict[Any, list[Any]] = {}
    for loader in loaders:
        for batch in loader:
            for index, numbers in batch:
                found.setdefault(index, []).append(numbers)
    return found
