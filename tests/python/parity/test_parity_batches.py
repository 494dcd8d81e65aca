"""Batch sizes, samplers, lengths, epochs: torch's DataLoader and headrace's side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from both import COUNT, MAKERS, assert_parity
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_convert,
)

pytestmark = pytest.mark.processes


class Unsized(Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        return iter([4, 2, 2, 0])


class Growing(Sampler[list[int]]):
    """Batches of 1, 2 and 3 samples, as a sampler of length buckets yields them."""

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(range(COUNT))
        for size in (1, 2, 3):
            yield list(itertools.islice(indices, size))

    def __len__(self) -> int:
        return 3


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(8)


NUMBERS: Any = range(COUNT)  # no Dataset by its type
OPTIONS: dict[str, Any] = {
    "defaults": lambda: {},
    "batches": lambda: {"batch_size": 4},
    "without the last": lambda: {"batch_size": 4, "drop_last": True},
    "all in one": lambda: {"batch_size": COUNT},
    "shuffled": lambda: {"batch_size": 4, "shuffle": True},
    "shuffled by a generator": lambda: {"batch_size": 4, "shuffle": True, "generator": generator()},
    "single samples": lambda: {"batch_size": None},
    "single samples, shuffled": lambda: {"batch_size": None, "shuffle": True},
    "converted": lambda: {"batch_size": None, "collate_fn": default_convert},
    "a list as sampler": lambda: {"sampler": [3, 3, 1], "batch_size": 2},
    "a tuple of negative numbers": lambda: {"sampler": (-1, 0), "batch_size": 2},
    "a tensor as sampler": lambda: {"sampler": torch.tensor([5, 6, 7]), "batch_size": 2},
    "a range as sampler": lambda: {"sampler": range(0, COUNT, 3), "batch_size": 2},
    "a sampler without length": lambda: {"sampler": Unsized(), "batch_size": 3},
    "with replacement": lambda: {"sampler": RandomSampler(range(COUNT), True, 9), "batch_size": 4},
    "fewer": lambda: {"sampler": RandomSampler(range(COUNT), num_samples=5), "batch_size": 2},
    "more": lambda: {"sampler": RandomSampler(range(COUNT), num_samples=20, generator=generator()), "batch_size": 7},
    "some at random": lambda: {"sampler": SubsetRandomSampler([1, 5, 9, 3], generator()), "batch_size": 3},
    "weighted": lambda: {"sampler": WeightedRandomSampler([1.0] * 5 + [9.0] * 9, 8), "batch_size": 3},
    "one of two processes": lambda: {"sampler": DistributedSampler(NUMBERS, 2, 1, seed=3), "batch_size": 3},
    "batches as lists": lambda: {"batch_sampler": [[1, 2], [3], [3, 3, 3]]},
    "batches as tuples": lambda: {"batch_sampler": [(1, 2), (0,)]},
    "batches of any size": lambda: {"batch_sampler": Growing()},
    "a batch sampler of torch": lambda: {"batch_sampler": BatchSampler(SequentialSampler(range(COUNT)), 5, True)},
    "a generator of batches": lambda: {"batch_sampler": ([i] for i in range(3))},
}


@pytest.mark.parametrize(
    ("name", "workers", "made"),
    [
        *((name, 0, made) for name in OPTIONS for made in MAKERS),
        *((name, 2, made) for i, name in enumerate(OPTIONS) for j, made in enumerate(MAKERS) if (i + j) % 2 == 0),
    ],
)
def test_two_epochs(name: str, workers: int, made: str) -> None:
    def run(kind: Any) -> Any:
        loader = kind(MAKERS[made](), num_workers=workers, **OPTIONS[name]())
        return [list(loader), list(loader)]

    epochs = assert_parity(run)["result"]
    assert epochs[0]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("name", OPTIONS)
def test_lengths(make: Callable[..., Any], name: str) -> None:
    def length(one: Any) -> Any:
        try:
            return len(one)
        except TypeError:
            return "none"

    assert_parity(lambda kind: length(kind(make(), **OPTIONS[name]())))

    def of_an_iterator(kind: Any) -> Any:
        iterator = iter(kind(make(), **OPTIONS[name]()))
        return length(iterator), list(iterator)

    assert_parity(of_an_iterator)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("workers", [0, 1])
class TestEpochs:
    def test_breaking_early_begins_anew(self, make: Callable[..., Any], workers: int) -> None:
        def run(kind: Any) -> Any:
            loader = kind(make(), 3, True, num_workers=workers)
            first = list(itertools.islice(loader, 2))
            return first, list(loader), torch.rand(2)

        assert_parity(run)

    def test_two_at_once(self, make: Callable[..., Any], workers: int) -> None:
        def run(kind: Any) -> Any:
            loader = kind(make(), 5, num_workers=workers)
            return [(a, b) for a, b in zip(loader, loader, strict=True)]

        assert_parity(run)

    def test_next_after_the_end(self, make: Callable[..., Any], workers: int) -> None:
        def run(kind: Any) -> Any:
            iterator = iter(kind(make(), 10, num_workers=workers))
            return [next(iterator, "end") for _ in range(4)]

        assert assert_parity(run)["result"][2:] == ["end", "end"]

    def test_an_iterator_is_its_own_iterator(self, make: Callable[..., Any], workers: int) -> None:
        def run(kind: Any) -> Any:
            iterator = iter(kind(make(), 10, num_workers=workers))
            return iter(iterator) is iterator, len(iterator), list(iterator)

        assert_parity(run)

    def test_distributed_epochs(self, make: Callable[..., Any], workers: int) -> None:
        def run(kind: Any) -> Any:
            sampler: Any = DistributedSampler(NUMBERS, 2, 0, shuffle=True, seed=9)
            loader, epochs = kind(make(), 4, sampler=sampler, num_workers=workers), []
            for epoch in (0, 1, 0):
                sampler.set_epoch(epoch)
                epochs.append(list(loader))
            return epochs

        assert_parity(run)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_persistent_workers(make: Callable[..., Any]) -> None:
    def run(kind: Any) -> Any:
        loader = kind(make(), 4, True, num_workers=2, persistent_workers=True, prefetch_factor=3)
        epochs = [list(loader) for _ in range(3)]
        return epochs, loader.persistent_workers, loader.prefetch_factor

    assert_parity(run)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_any_order(make: Callable[..., Any]) -> None:
    def run(kind: Any) -> Any:
        loader = kind(make(), 3, num_workers=2, in_order=False)
        return sorted((labels.tolist(), images.sum().item()) for images, labels in loader)

    assert_parity(run)
