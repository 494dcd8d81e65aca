"""With seed=, samples that torch's DataLoader makes keep their random numbers over ranks and resumed runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from seeded_loaders import COUNT, LOADERS, Noise, comparable, listed, samples_of
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler

from headrace import DataLoader
from headrace import sampler as samplers
from stateful_datasets import Counting

pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes"),
    pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"),
]


def test_an_epoch_that_is_set_has_its_numbers() -> None:
    loader = LOADERS["shuffled"]()
    first, second = comparable(loader), comparable(loader)
    loader.set_epoch(0)
    assert comparable(loader) == first
    other = LOADERS["shuffled"](num_workers=1)
    other.set_epoch(1)
    assert comparable(other) == second


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_share_the_samples_of_one_process(workers: int) -> None:
    options: dict[str, Any] = {"seed": 5, "collate_fn": listed, "num_workers": workers}
    whole = samples_of(DataLoader(Noise(), 4, True, **options))
    ranks = [DataLoader(Noise(), 2, True, rank=rank, world_size=2, **options) for rank in range(2)]
    found = samples_of(*ranks)
    again = next(index for index in found if len(found[index]) == 2)  # 11 samples are made 12
    assert {index: numbers[:1] for index, numbers in found.items()} == whole
    assert found[again][0] != found[again][1]
    for loader in ranks:
        assert comparable(loader) != comparable(loader)  # another epoch
    numbers: Any = range(COUNT)
    torchs = [DataLoader(Noise(), 2, sampler=DistributedSampler(numbers, 2, rank), **options) for rank in range(2)]
    assert {index: numbers[:1] for index, numbers in samples_of(*torchs).items()} == whole


def test_copies_on_other_ranks_are_other_occurrences() -> None:
    def share(sampler: Any, **more: Any) -> DataLoader:
        return DataLoader(Noise(), sampler=sampler, seed=5, collate_fn=listed, **more)

    repeated = [share(samplers.RepeatedAugment(Noise(), 3, rank)) for rank in range(3)]
    with_repetitions = [
        share(
            RandomSampler(range(COUNT), True, 30, torch.Generator().manual_seed(1)),
            rank=rank,
            world_size=3,
        )
        for rank in range(3)
    ]
    found = [samples_of(*loaders) for loaders in (repeated, with_repetitions)]
    for each in found:
        assert max(map(len, each.values())) >= 3
        assert all(len(set(numbers)) == len(numbers) for numbers in each.values())
    alone = samples_of(share(samplers.RepeatedAugment(Noise(), 1, 0)))
    assert all(sorted(found[0][index])[:3] == sorted(numbers) for index, numbers in alone.items() if len(numbers) == 3)


def test_batches_are_shared_too() -> None:
    def share(rank: int) -> DataLoader:
        batches = BatchSampler(RandomSampler(range(COUNT), True, 20, torch.Generator().manual_seed(1)), 4, False)
        return DataLoader(Noise(), batch_sampler=batches, rank=rank, world_size=2, seed=5, collate_fn=listed)

    found = samples_of(share(0), share(1))
    assert sum(map(len, found.values())) == 24
    assert all(len(set(numbers)) == len(numbers) for numbers in found.values())


@pytest.mark.parametrize("name", [name for name in LOADERS if name != "from the default generator"])
def test_a_resumed_loader_delivers_the_rest(name: str) -> None:
    make = LOADERS[name]
    for before, after in ((0, 2), (2, 0)):
        if ("with a state" in name and "dataset" in name) or name == "one by one with a state":
            before = after = 1  # a dataset with a state resumes with the same number of workers
        loader = make(num_workers=before, snapshot_every_n_steps=1 if before < 2 else 3)
        list(loader)
        batches = iter(loader)
        for _ in range(2):
            next(batches)
        state = loader.state_dict()
        rest, later = comparable(batches), comparable(loader)
        other = make(num_workers=after)
        other.load_state_dict(state)
        assert comparable(other) == rest
        assert comparable(other) == later


def test_no_sample_is_made_again_to_resume() -> None:
    class Costly(Counting):
        state_dict = load_state_dict = None  # type: ignore[assignment]

    loader = DataLoader(Costly(), 3, True, seed=5, collate_fn=listed)
    batches = iter(loader)
    next(batches), next(batches)
    data = Costly()
    other = DataLoader(data, 3, True, seed=5, collate_fn=listed)
    other.load_state_dict(loader.state_dict())
    assert len(list(other)) == 5 and data.made == 14
