"""headrace's samplers in headrace's loader: a new order each epoch, resume at any position, no memory per sample."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, Dataset, RandomSampler, SubsetRandomSampler, WeightedRandomSampler

from headrace import DataLoader, ImageArray
from headrace import transforms as T
from headrace._loading.epoch import order
from headrace.sampler import (
    AspectRatioBatchSampler,
    DistributedSampler,
    LengthBucketBatchSampler,
    PermutationSampler,
    PixelBudgetBatchSampler,
    RepeatedAugment,
    ShardedSampler,
)
from support import assert_same

COUNT = 30
DATA = ImageArray(torch.zeros(COUNT, 4, 4, 3, dtype=torch.uint8), range(COUNT), T.ToTensor())
LENGTHS = [1 + n * n % 17 for n in range(COUNT)]

INDICES: dict[str, Callable[[], Any]] = {
    "permutation": lambda: PermutationSampler(DATA, seed=4),
    "distributed": lambda: DistributedSampler(DATA, 2, 1, seed=4),
    "repeated": lambda: RepeatedAugment(DATA, 2, 1, seed=4),
    "sharded": lambda: ShardedSampler(PermutationSampler(DATA, seed=4), 2, 1),
}
BATCHES: dict[str, Callable[[], Any]] = {
    "lengths": lambda: LengthBucketBatchSampler(LENGTHS, 4, seed=4),
    "tokens": lambda: LengthBucketBatchSampler(LENGTHS, max_tokens=40, seed=4),
    "pixels": lambda: PixelBudgetBatchSampler(DATA, 70, seed=4),
    "aspect": lambda: AspectRatioBatchSampler(DATA, 4, [(4, 4)], seed=4),
    "sharded batches": lambda: ShardedSampler(LengthBucketBatchSampler(LENGTHS, 4, seed=4), 2, 1),
}


def set_epoch(loader: DataLoader, epoch: int) -> None:
    """Calls `set_epoch` of the loader's sampler."""
    sampler: Any = loader.sampler
    sampler.set_epoch(epoch)


def loader(name: str, **options: Any) -> DataLoader:
    if name in INDICES:
        return DataLoader(DATA, 4, sampler=INDICES[name](), seed=4, **options)
    return DataLoader(DATA, batch_sampler=BATCHES[name](), seed=4, **options)


@pytest.mark.parametrize("name", [*INDICES, *BATCHES])
def test_each_epoch_is_another_one_and_can_be_resumed_anywhere(name: str) -> None:
    whole = loader(name)
    epochs = [list(whole) for _ in range(3)]
    orders = [[labels.tolist() for _, labels in epoch] for epoch in epochs]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    again = loader(name)
    again.set_epoch(1)
    sampler: Any = again.sampler if name in INDICES else again.batch_sampler
    iterator = iter(again)
    for position in range(len(epochs[1]) + 1):
        resumed = loader(name)
        resumed.load_state_dict(again.state_dict())
        assert_same(resumed, epochs[1][position:])
        assert_same(resumed, epochs[2])
        next(iterator, None)
    sampler.set_epoch(2)  # as with torch's samplers
    assert_same(again, epochs[2])
    assert again._peek_epoch()[0].epoch == 3


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_set_epoch_of_a_sampler_is_heeded_up_to_the_first_batch(shuffle: bool, workers: int) -> None:
    """As in torch's loader, which first reads its sampler then: Lightning makes iterators before it sets the epoch."""
    steps = T.Compose([T.ToTensor(), T.RandomErasing(1.0, value=1)])
    data = ImageArray(torch.zeros(COUNT, 4, 4, 3, dtype=torch.uint8), range(COUNT), steps)
    whole, late = (DataLoader(data, 4, shuffle, seed=4, num_workers=workers) for _ in range(2))
    epochs = [list(whole) for _ in range(5)]
    iterator = iter(late)
    set_epoch(late, 3)
    assert_same(iterator, epochs[3])
    assert_same(late, epochs[4])
    iterator = iter(late)  # of epoch 5
    set_epoch(late, 2)
    first = next(iterator)
    set_epoch(late, 1)  # too late for this one
    assert_same([first, *iterator], epochs[2])
    assert_same(late, epochs[1])
    iterator = iter(late)
    late.set_epoch(0)  # the loader's applies to the next iterator
    assert_same(iterator, epochs[2])
    assert_same(late, epochs[0])
    iterator = iter(late)
    set_epoch(late, 1)  # already this iterator's epoch
    assert_same(iterator, epochs[1])
    assert_same(late, epochs[2])


def test_what_follows_from_a_late_epoch() -> None:
    """The random numbers of out_transform, the state and torch's generator follow the late epoch."""

    def noise(batch: list[torch.Tensor]) -> list[torch.Tensor]:
        return [batch[0] + torch.rand(()), batch[1]]

    def made() -> DataLoader:
        return DataLoader(DATA, 4, True, seed=4, out_transform=noise)

    expected, late, other = made(), made(), made()
    expected.set_epoch(3)
    iterator = iter(late)
    set_epoch(late, 3)
    other.load_state_dict(late.state_dict())
    whole = list(expected)
    assert_same(iterator, whole)
    assert_same(other, whole)
    late.load_state_dict(late.state_dict())
    set_epoch(late, 5)
    assert late.state_dict()["epoch"] == late.upcoming_epoch == 5
    states = []
    for before in (True, False):
        torch.manual_seed(1)
        unseeded = DataLoader(DATA, 4, sampler=PermutationSampler(DATA))
        if before:
            set_epoch(unseeded, 2)
        iterator = iter(unseeded)
        if not before:
            set_epoch(unseeded, 2)
        next(iterator)
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


class Numbers(Dataset):
    """A dataset that headrace does not know."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> int:
        return index


@pytest.mark.processes
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{"seed": 4}, {"seed": None, "sampler": PermutationSampler(Numbers(), seed=4)}])
def test_a_late_epoch_of_a_loader_that_torch_serves(options: dict[str, Any], workers: int) -> None:
    def made() -> DataLoader:
        loader = DataLoader(Numbers(), 10, "sampler" not in options, num_workers=workers, **options)
        loader.set_epoch(0)
        return loader

    whole = made()
    epochs = [[batch.tolist() for batch in whole] for _ in range(5)]
    assert not whole.native and epochs[0] != epochs[3]
    late = made()
    iterator: Any = iter(late)
    assert len(iterator) == 3
    set_epoch(late, 3)
    assert late.upcoming_epoch == 3
    assert [batch.tolist() for batch in iterator] == epochs[3]
    assert [batch.tolist() for batch in late] == epochs[4]
    late = made()
    first, second = iter(late), iter(late)
    assert [[batch.tolist() for batch in one] for one in (first, second)] == epochs[:2]


def test_a_copy_counts_for_itself() -> None:
    loader = DataLoader(DATA, 4, True, seed=4)
    iterator = iter(loader)
    next(iterator)
    copied = copy.copy(loader)
    next(iterator)
    assert (loader.state_dict()["position"], copied.state_dict()["position"]) == (2, 1)


def test_a_batch_sampler_that_is_dealt_out_tells_what_it_draws_from() -> None:
    inner = PermutationSampler(DATA)
    ShardedSampler(BatchSampler(inner, 4, False), 2, 0).set_epoch(3)
    assert inner.epoch == 3


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({"shuffle": True}, {"sampler": RandomSampler(DATA)}),
        ({"sampler": RandomSampler(DATA)}, {"sampler": RandomSampler(DATA, replacement=True)}),
        ({"sampler": RandomSampler(DATA)}, {"sampler": RandomSampler(DATA, num_samples=20)}),
        ({"sampler": [1, 2, 3, 4]}, {"sampler": [1, 2, 4, 3]}),
        ({"sampler": SubsetRandomSampler([1, 2, 3])}, {"sampler": SubsetRandomSampler([1, 2, 5])}),
        ({"sampler": WeightedRandomSampler([1.0, 2.0], 4)}, {"sampler": WeightedRandomSampler([1.0, 3.0], 4)}),
        (
            {"batch_sampler": LengthBucketBatchSampler(LENGTHS, 4)},
            {"batch_sampler": LengthBucketBatchSampler(LENGTHS[::-1], 4)},
        ),
        (
            {"batch_sampler": AspectRatioBatchSampler(DATA, 4, [(4, 4)])},
            {"batch_sampler": AspectRatioBatchSampler(DATA, 4, [(4, 4), (4, 8)])},
        ),
        (
            {"sampler": ShardedSampler(range(30), 4, 0)},
            {"sampler": ShardedSampler(range(30), 4, 0, drop_last=True)},
        ),
    ],
)
def test_a_state_of_another_order_is_refused(then: dict[str, Any], now: dict[str, Any]) -> None:
    before, after = (DataLoader(DATA, seed=4, **options) for options in (then, now))
    after.load_state_dict(after.state_dict())
    with pytest.raises(ValueError, match=r"samples in another way|another drop_last"):
        after.load_state_dict(before.state_dict())


@pytest.mark.parametrize("name", ["permutation", "distributed", "sharded", "lengths", "aspect"])
def test_orders_without_repeats_count_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(length: int) -> None:
        raise AssertionError("repeats are counted, which takes memory for each sample")

    monkeypatch.setattr(order, "Occurrences", refused)
    assert len(list(loader(name))) > 1
    with pytest.raises(AssertionError, match="repeats are counted"):
        list(loader("repeated"))


def test_a_permutation_is_resumed_without_what_lies_before(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_position_beyond_the_end_of_a_permutation() -> None:
    whole = loader("permutation")
    iter(whole)
    resumed = loader("permutation")
    resumed.load_state_dict({**whole.state_dict(), "position": 9})
    with pytest.raises(ValueError, match="9 batches were yielded, but this epoch has only 8"):
        iter(resumed)
