"""headrace's samplers in headrace's loader: new epochs by themselves, resume from anywhere, nothing that grows."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from headrace import Arrays, DataLoader, order
from headrace import transforms as T
from headrace.sampler import (
    AspectRatioBatchSampler,
    DistributedSampler,
    LengthBucketBatchSampler,
    PermutationSampler,
    RepeatedAugment,
    ShardedSampler,
)
from support import assert_same

COUNT = 30
DATA = Arrays(torch.zeros(COUNT, 4, 4, 3, dtype=torch.uint8), range(COUNT), T.ToTensor())
LENGTHS = [1 + n * n % 17 for n in range(COUNT)]

INDICES = {
    "permutation": lambda: PermutationSampler(DATA, seed=4),
    "distributed": lambda: DistributedSampler(DATA, 2, 1, seed=4),
    "repeated": lambda: RepeatedAugment(DATA, 2, 1, seed=4),
    "sharded": lambda: ShardedSampler(PermutationSampler(DATA, seed=4), 2, 1),
}
BATCHES = {
    "lengths": lambda: LengthBucketBatchSampler(LENGTHS, 4, seed=4),
    "tokens": lambda: LengthBucketBatchSampler(LENGTHS, max_tokens=40, seed=4),
    "aspect": lambda: AspectRatioBatchSampler(DATA, 4, [(4, 4)], seed=4),
    "sharded batches": lambda: ShardedSampler(LengthBucketBatchSampler(LENGTHS, 4, seed=4), 2, 1),
}


def loader(name: str, **options: Any) -> DataLoader:
    if name in INDICES:
        return DataLoader(DATA, 4, sampler=INDICES[name](), seed=4, **options)
    return DataLoader(DATA, batch_sampler=BATCHES[name](), seed=4, **options)


@pytest.mark.parametrize("name", [*INDICES, *BATCHES])
def test_each_epoch_is_another_one_and_can_be_resumed_anywhere(name):
    whole = loader(name)
    epochs = [list(whole) for _ in range(3)]
    orders = [[labels.tolist() for _, labels in epoch] for epoch in epochs]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    again = loader(name)
    again.set_epoch(1)
    sampler = again.sampler if name in INDICES else again.batch_sampler
    iterator = iter(again)
    for position in range(len(epochs[1]) + 1):
        resumed = loader(name)
        resumed.load_state_dict(again.state_dict())
        assert_same(resumed, epochs[1][position:])
        assert_same(resumed, epochs[2])
        next(iterator, None)
    sampler.set_epoch(2)  # as people do it with torch's
    assert_same(again, epochs[2])
    assert again.peek_epoch()[0].epoch == 3


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_set_epoch_of_a_sampler_is_heeded_up_to_the_first_batch(shuffle, workers):
    """As by torch's loader, whose sampler is first asked then: Lightning makes iterators before it knows the epoch."""
    steps = T.Compose([T.ToTensor(), T.RandomErasing(1.0, value=1)])
    data = Arrays(torch.zeros(COUNT, 4, 4, 3, dtype=torch.uint8), range(COUNT), steps)
    whole, late = (DataLoader(data, 4, shuffle, seed=4, num_workers=workers) for _ in range(2))
    epochs = [list(whole) for _ in range(5)]
    iterator = iter(late)
    late.sampler.set_epoch(3)
    assert_same(iterator, epochs[3])
    assert_same(late, epochs[4])
    iterator = iter(late)  # of epoch 5
    late.sampler.set_epoch(2)
    first = next(iterator)
    late.sampler.set_epoch(1)  # too late for this one
    assert_same([first, *iterator], epochs[2])
    assert_same(late, epochs[1])
    iterator = iter(late)
    late.set_epoch(0)  # of the loader: of the next iterator
    assert_same(iterator, epochs[2])
    assert_same(late, epochs[0])
    iterator = iter(late)
    late.sampler.set_epoch(1)  # which it is of
    assert_same(iterator, epochs[1])
    assert_same(late, epochs[2])


@pytest.mark.parametrize("name", ["permutation", "distributed", "sharded", "lengths", "aspect"])
def test_orders_without_repeats_count_nothing(name, monkeypatch):
    def refused(length: int) -> None:
        raise AssertionError("repeats are counted, which takes memory for each sample")

    monkeypatch.setattr(order, "Occurrences", refused)
    assert len(list(loader(name))) > 1
    with pytest.raises(AssertionError, match="repeats are counted"):
        list(loader("repeated"))


def test_a_permutation_is_resumed_without_what_lies_before(monkeypatch):
    began: list[int] = []
    stock = PermutationSampler.iter_from

    def iter_from(self: PermutationSampler, start: int) -> Any:
        began.append(start)
        return stock(self, start)

    monkeypatch.setattr(PermutationSampler, "iter_from", iter_from)
    whole = loader("permutation")
    iterator = iter(whole)
    [next(iterator) for _ in range(3)]
    resumed = loader("permutation")
    resumed.load_state_dict(whole.state_dict())
    began.clear()
    assert_same(resumed, iterator)
    assert 12 in began and set(began) <= {0, 12}


def test_a_position_beyond_the_end_of_a_permutation():
    whole = loader("permutation")
    iter(whole)
    resumed = loader("permutation")
    resumed.load_state_dict({**whole.state_dict(), "position": 9})
    with pytest.raises(ValueError, match="9 batches were yielded, but this epoch has only 8"):
        iter(resumed)
