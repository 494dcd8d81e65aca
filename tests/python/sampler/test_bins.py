"""Bins hold every sample once, within the budget; they follow from (seed, epoch), resume, and are shared out evenly."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

from headrace import DataLoader
from headrace.sampler import LengthBucketBatchSampler, PackingBatchSampler, PackingCollate
from headrace.sampler.bins import best_fit, first_fit
from support import assert_same

RANDOM = np.random.default_rng(4)
#: (lengths, budget) of sentences, of documents cut at the budget, and of images of native resolution in patches.
LENGTHS = {
    "log-normal": (np.clip(RANDOM.lognormal(5, 1, 20000), 1, 2048).astype(np.int64), 2048),
    "cut at the budget": (np.minimum(RANDOM.lognormal(6.5, 1.5, 20000) + 1, 2048).astype(np.int64), 2048),
    "patches": (RANDOM.integers(8, 33, 20000) * RANDOM.integers(8, 33, 20000), 2048),
}
METHODS = ("best_fit", "first_fit")


def naive(lengths: list[int], capacity: int, most: int, best: bool) -> list[list[int]]:
    bins: list[list[int]] = []
    rooms: list[int] = []
    for position, length in enumerate(lengths):
        fits = [n for n, room in enumerate(rooms) if room >= length and len(bins[n]) < most]
        if not fits:
            bins.append([])
            rooms.append(capacity)
            fits = [len(bins) - 1]
        number = min(fits, key=lambda n: rooms[n]) if best else fits[0]
        bins[number].append(position)
        rooms[number] -= length
    return bins


@pytest.mark.parametrize("most", [2, 5, 1000])
def test_the_algorithms_are_what_they_say(most: int) -> None:
    for seed in range(60):
        random = np.random.default_rng(seed)
        capacity = int(random.integers(1, 60))
        lengths = random.integers(1, capacity + 1, int(random.integers(1, 70)))
        for one in (lengths, np.sort(lengths)[::-1]):
            assert first_fit(one, capacity, most) == naive(one.tolist(), capacity, most, best=False)
            assert best_fit(one, capacity, most) == naive(one.tolist(), capacity, most, best=True)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", LENGTHS)
def test_little_of_the_budget_is_unused(name: str, method: Any) -> None:
    """Beside what LengthBucketBatchSampler pads; each sample occurs once, and no bin is over the budget."""
    lengths, budget = LENGTHS[name]
    sampler = PackingBatchSampler(lengths, budget, method=method, seed=3)
    bins = list(sampler)
    assert np.array_equal(np.sort(np.concatenate(bins)), np.arange(len(lengths)))
    filled = np.array([lengths[one].sum() for one in bins])
    assert filled.max() <= budget and len(sampler) == len(bins)
    assert sampler.unused_share() == pytest.approx(1 - filled.sum() / (budget * len(bins)))
    assert sampler.unused_share() < {"log-normal": 0.001, "cut at the budget": 0.001, "patches": 0.005}[name]
    padded = LengthBucketBatchSampler(lengths, max_tokens=budget, seed=3)
    assert len(padded) > 1.01 * len(bins)


def test_options() -> None:
    lengths, budget = LENGTHS["patches"]
    few = PackingBatchSampler(lengths, budget, max_samples=3)
    assert max(map(len, few)) == 3 and len(few) > len(PackingBatchSampler(lengths, budget))
    in_order = PackingBatchSampler(lengths, budget, shuffle=False, window=64)
    in_order.set_epoch(5)
    assert list(in_order) == list(PackingBatchSampler(lengths, budget, shuffle=False, window=64))
    assert max(map(max, list(in_order)[:5])) < 128
    whole = PackingBatchSampler(lengths, budget, drop_last=True)
    assert len(whole) == len(PackingBatchSampler(lengths, budget)) - 1
    smaller = [PackingBatchSampler(lengths, budget, window=window).unused_share() for window in (32, 512, 8192)]
    assert smaller == sorted(smaller, reverse=True)
    assert list(PackingBatchSampler([3, 0, 2], 3, shuffle=False)) == [[0], [2, 1]]


def test_epochs_differ_and_follow_from_the_seed() -> None:
    lengths, budget = LENGTHS["log-normal"]
    one, other = (PackingBatchSampler(lengths, budget, seed=7) for _ in range(2))
    first = list(one)
    one.set_epoch(1)
    other.set_epoch(1)
    assert list(one) == list(other) != first
    other.set_epoch(0)
    assert list(other) == first and list(other.iter_from(5)) == first[5:]
    assert list(PackingBatchSampler(lengths, budget, seed=8)) != first


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([3, 9, 4], 8), ValueError, "sample 1 is 9 long, more than max_tokens=8"),
        (([], 8), ValueError, "there are no samples"),
        (([1, -1], 8), ValueError, "sample 1 has a length of -1"),
        (([1.5], 8), TypeError, "lengths must be integers"),
        (([1], 0), ValueError, "max_tokens must be 1 or more"),
        (([1], 8, {"method": "worst_fit"}), ValueError, "method must be one of best_fit, first_fit"),
        (([1], 8, {"window": 0}), ValueError, "window must be 1 or more"),
        (([1], 8, {"max_samples": 0}), ValueError, "max_samples must be 1 or more"),
    ],
)
def test_wrong_arguments(arguments: Any, error: type, words: str) -> None:
    lengths, budget, options = (*arguments, {})[:3]
    with pytest.raises(error, match=words):
        PackingBatchSampler(lengths, budget, **options)


class Tokens(Dataset[dict[str, torch.Tensor]]):
    """Sequences that torch's DataLoader would deliver, too."""

    lengths = LENGTHS["log-normal"][0][:300]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"ids": torch.arange(int(self.lengths[index])), "number": torch.tensor(index)}


def loader(kind: Any = DataLoader, **options: Any) -> Any:
    sampler = PackingBatchSampler(Tokens.lengths, 2048, seed=5)
    return kind(Tokens(), batch_sampler=sampler, collate_fn=PackingCollate(["ids"]), **options)


def flat(batches: Any) -> list[Any]:
    return [[*batch["ids"], batch["number"]] for batch in batches]


def test_a_loader_goes_on_with_equal_batches() -> None:
    whole = flat(loader())
    assert_same(whole, flat(loader(TorchDataLoader)))
    for done in (0, 1, 7, len(whole) - 1):
        ours = loader(seed=1)
        iterator = iter(ours)
        for _ in range(done):
            next(iterator)
        resumed = loader(seed=1)
        resumed.load_state_dict(ours.state_dict())
        assert_same(flat(resumed), whole[done:])


@pytest.mark.parametrize("world", [2, 3, 5])
def test_ranks_get_equally_many_bins(world: int) -> None:
    whole = [batch["number"].tolist() for batch in loader()]
    ranks = [[batch["number"].tolist() for batch in loader(rank=rank, world_size=world)] for rank in range(world)]
    assert {len(one) for one in ranks} == {-(-len(whole) // world)}
    dealt = list(chain(*zip(*ranks, strict=True)))
    assert dealt[: len(whole)] == whole and dealt[len(whole) :] == whole[: len(dealt) - len(whole)]
