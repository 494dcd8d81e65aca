"""Rank and world size: found, given, changed or refused; and their effect on samplers, workers and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, Dataset, RandomSampler, SequentialSampler, WeightedRandomSampler
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data.distributed import DistributedSampler as TorchDistributedSampler

from headrace import DataLoader, EncodedImages
from headrace._base import ranks as world
from headrace.sampler import DistributedSampler, RepeatedAugment, ShardedSampler
from rank_loaders import FEW, interleaved, ranks
from support import assert_same, pictures, train, truncated


class Drawn(Dataset):
    """Samples of random numbers, drawn in torch's workers."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> float:
        return float(torch.rand(()))


@pytest.mark.parametrize("given", [True, False])
def test_ranks_workers_do_not_draw_the_same(given: bool) -> None:
    drawn = []
    for rank in range(2):
        sampler: Any = TorchDistributedSampler(Drawn(), 2, rank) if given else None
        world: dict[str, Any] = {} if given else {"rank": rank, "world_size": 2}
        if given:
            torch.manual_seed(100 + rank)  # without a seed, the default generator seeds the workers, as in torch
        drawn.append(torch.cat(list(DataLoader(Drawn(), 2, sampler=sampler, num_workers=1, **world))).tolist())
    assert not set(drawn[0]) & set(drawn[1])


def test_a_job_of_one_rank_has_the_order_of_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_job(rank: int, size: int) -> DataLoader:
        for name, value in {"TORCHELASTIC_RUN_ID": "x", "RANK": str(rank), "WORLD_SIZE": str(size)}.items():
            monkeypatch.setenv(name, value)
        loader = DataLoader(FEW, 12 // size, shuffle=True, distributed=True)
        loader.reference()
        return loader

    two = [torch.cat([labels for _, labels in of_job(rank, 2)]) for rank in range(2)]
    one = of_job(0, 1)
    assert torch.cat([labels for _, labels in one]).tolist() == interleaved(two).tolist()
    large = of_job(0, 2)
    next(iter(large))
    one = of_job(0, 1)
    one.load_state_dict(large.state_dict())
    assert torch.cat([labels for _, labels in one]).tolist() == interleaved(two).tolist()[12:]


def in_a_job(monkeypatch: pytest.MonkeyPatch, rank: int, size: int) -> None:
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "RANK": str(rank), "WORLD_SIZE": str(size)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(world, "_warned", False)


@pytest.mark.parametrize("make", [lambda: FEW, lambda: Numbers()])
def test_a_rank_is_given_everything_as_by_torch(monkeypatch: pytest.MonkeyPatch, make: Callable[..., Any]) -> None:
    """Without distributed=True nothing is sharded: rank 0 may evaluate alone, or a dataset may shard itself."""
    in_a_job(monkeypatch, 0, 4)
    loader = DataLoader(make(), 4)
    assert not loader._shards_itself and len(loader) == len(TorchDataLoader(make(), 4)) == 6
    with pytest.warns(UserWarning, match="each of the 4 ranks of torchrun reads all samples .* distributed=True"):
        iter(loader)
    assert "each reads all samples" in str(loader.explain())
    for _ in loader:  # warns once per process
        pass
    monkeypatch.setattr(world, "_warned", False)
    for meant in ({"world_size": 1}, {"sampler": range(22)}, {"distributed": True}, {"rank": 1, "world_size": 2}):
        list(DataLoader(make(), 4, **meant))  # pytest makes warnings errors


def test_dealing_out_is_asked_for_by_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_job(monkeypatch, 1, 2)
    asked, given = DataLoader(FEW, 4, distributed=True), DataLoader(FEW, 4, rank=1, world_size=2)
    assert asked._shards_itself and torch.equal(*(torch.cat([y for _, y in one]) for one in (asked, given)))
    given = DataLoader(FEW, 4, sampler=range(8), distributed=True)
    assert torch.cat([y for _, y in given]).tolist() == [1, 3, 5, 7]


def test_orders_that_ranks_may_not_agree_on_are_warned_of() -> None:
    for sampler in (RandomSampler(FEW), WeightedRandomSampler([1.0] * 22, 22)):
        with pytest.warns(UserWarning, match=r"draws from torch's default generator, which must then be in the same"):
            DataLoader(FEW, 4, sampler=sampler, rank=0, world_size=2)


def test_a_sampler_of_the_users_stays_in_the_epoch_it_was_given() -> None:
    class Mine(SequentialSampler):
        epoch = 0

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

        def __iter__(self) -> Iterator[int]:
            return iter([(i + self.epoch) % 22 for i in range(22)])

    mine = Mine(FEW)
    mine.set_epoch(5)
    loader = DataLoader(FEW, 4, sampler=mine, rank=0, world_size=2)
    loader._peek_epoch(), loader.verify(1)
    assert mine.epoch == 5
    assert next(iter(loader))[1].tolist() == [5, 7, 9, 11]
    loader.set_epoch(2)
    assert next(iter(loader))[1].tolist() == [2, 4, 6, 8]
    sampler: Any = loader.sampler  # of this rank
    sampler.set_epoch(3)
    assert next(iter(loader))[1].tolist() == [3, 5, 7, 9]


class Numbers(Dataset):
    """A dataset that headrace does not know."""

    def __len__(self) -> int:
        return 22

    def __getitem__(self, index: int) -> int:
        return index


@pytest.mark.parametrize("shuffle", [False, True])
def test_what_torch_delivers_is_dealt_out_too(shuffle: bool) -> None:
    orders = []
    loaders = ranks(2, Numbers(), batch_size=4, shuffle=shuffle)
    assert not loaders[0].native
    for _ in range(2):
        parts = [torch.cat(list(loader)) for loader in loaders]
        orders.append(interleaved(parts).tolist())
        assert sorted(orders[-1]) == list(range(22))
    assert (orders[0] != orders[1]) == shuffle
    native = [torch.cat([labels for _, labels in loader]) for loader in ranks(2, batch_size=4, shuffle=shuffle)]
    assert interleaved(native).tolist() == orders[0]
    assert "rank 0 of 2: one sample in 2" in str(loaders[0].explain())


def test_set_epoch_of_the_sampler_is_that_of_the_loader() -> None:
    """As with torch's DistributedSampler: loops call it on ``loader.sampler``."""
    loader = ranks(2, batch_size=4, shuffle=True)[1]
    assert isinstance(loader.sampler, TorchDistributedSampler)
    epochs = [list(loader) for _ in range(4)]
    again = ranks(2, batch_size=4, shuffle=True)[1]
    for number in (2, 0, 3):
        assert isinstance(again.sampler, TorchDistributedSampler)
        again.sampler.set_epoch(number)
        assert again._peek_epoch()[0].epoch == number
        assert_same(again, epochs[number])
    again.set_epoch(1)
    assert_same(again, epochs[1])
    assert_same(again, epochs[2])


def test_a_distributed_sampler_of_the_user_is_respected() -> None:
    for kind in (DistributedSampler, TorchDistributedSampler):
        sampler: Any = kind(FEW, 2, 1, seed=9)
        loader = DataLoader(FEW, 4, sampler=sampler, seed=1)
        labels = torch.cat([labels for _, labels in loader]).tolist()
        assert labels == list(kind(FEW, 2, 1, seed=9))
    theirs = TorchDataLoader(Numbers(), 4, sampler=DistributedSampler(Numbers(), 2, 1, seed=9))
    assert torch.cat(list(theirs)).tolist() == list(DistributedSampler(FEW, 2, 1, seed=9))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rank": 2, "world_size": 2}, ValueError, "rank 2 is outside of a world of 2: ranks go from 0 to 1"),
        ({"rank": -1, "world_size": 2}, ValueError, "rank -1 is outside of a world of 2"),
        ({"rank": 0, "world_size": 0}, ValueError, "world_size must be 1 or more, not 0"),
        ({"rank": 0}, ValueError, "rank=0 is given without world_size"),
        ({"world_size": 2}, ValueError, "world_size=2 is given without rank"),
        ({"distributed": True, "world_size": 2}, ValueError, "distributed=True takes rank and world_size from"),
        ({"distributed": 1}, TypeError, "distributed must be True or False, not 1"),
        ({"rank": 0.5, "world_size": 2}, TypeError, "rank must be a whole number"),
        (
            {"rank": 0, "world_size": 2, "sampler": DistributedSampler(FEW, 2, 0)},
            ValueError,
            "DistributedSampler already splits its order among ranks: leave out rank and world_size",
        ),
        (
            {"rank": 0, "world_size": 2, "batch_sampler": BatchSampler(TorchDistributedSampler(FEW, 2, 0), 4, False)},
            ValueError,
            "DistributedSampler already splits its order among ranks",
        ),
        ({"rank": 0, "world_size": 2, "sampler": iter([1, 2])}, TypeError, "has no length: it cannot be split"),
        ({"rank": 0, "world_size": 2, "sampler": [1], "shuffle": True}, ValueError, "mutually exclusive with shuffle"),
    ],
)
def test_worlds_that_are_refused(options: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        DataLoader(FEW, **options)


def test_a_state_that_another_world_cannot_take() -> None:
    state = DataLoader(FEW, 4, sampler=TorchDistributedSampler(FEW, 2, 0), seed=1).state_dict()
    other = DataLoader(FEW, 4, sampler=TorchDistributedSampler(FEW, 3, 0), seed=1)
    with pytest.raises(
        ValueError, match=r"DistributedSampler\(drop_last=False, seed=0, shuffle=True\) of 2 ranks.* of 3 ranks"
    ):
        other.load_state_dict(state)


def test_a_state_of_another_sampler_of_the_same_kind() -> None:
    state = DataLoader(FEW, 4, sampler=RepeatedAugment(FEW, seed=1), seed=1).state_dict()
    for other in (RepeatedAugment(FEW, seed=2), RepeatedAugment(FEW, seed=1, repetitions=2)):
        with pytest.raises(ValueError, match=r"samples in another way .saved 'RepeatedAugment.*repetitions=3, seed=1"):
            DataLoader(FEW, 4, sampler=other, seed=1).load_state_dict(state)


def test_an_index_out_of_range_is_one_sentence_on_every_rank() -> None:
    for rank in range(2):
        loader = DataLoader(FEW, 2, sampler=[0, 1, 2, 99], rank=rank, world_size=2)
        with pytest.raises(IndexError, match="the sampler named index 99, out of range for a dataset of 22 samples"):
            list(loader)


def test_a_rank_does_not_leave_out_a_batch() -> None:
    """Batches may shrink, but if a rank skipped a whole batch, the other ranks would wait in their next step."""
    files = [truncated(one) if n in (4, 6) else one for n, one in enumerate(pictures(12))]
    dataset = EncodedImages(files, range(12), train(16))
    for rank in range(2):
        loader = DataLoader(dataset, 2, rank=rank, world_size=2, on_error="skip")
        if rank:
            assert len(list(loader)) == 3
        else:
            with pytest.raises(RuntimeError, match=r"the other ranks would wait .* on_error=.replace"):
                list(loader)
    theirs = DataLoader(dataset, 2, sampler=TorchDistributedSampler(dataset, 2, 0, shuffle=False), on_error="skip")
    with pytest.raises(RuntimeError, match="the other ranks would wait"):
        list(theirs)
    with pytest.warns(UserWarning, match="2 samples could not be made and were skipped"):
        assert len(list(DataLoader(dataset, 2, on_error="skip"))) == 6


def test_sharded_samplers_say_what_they_hold() -> None:
    sampler = ShardedSampler(SequentialSampler(range(7)), 3, 2)
    assert (list(sampler), len(sampler)) == ([2, 5, 1], 3)
    sampler = ShardedSampler(SequentialSampler(range(7)), 3, 2, drop_last=True)
    assert (list(sampler), len(sampler)) == ([2, 5], 2)


def test_repeated_augmentation_of_wrong_numbers() -> None:
    with pytest.raises(ValueError, match="repetitions must be 1 or more, not 0"):
        RepeatedAugment(FEW, repetitions=0)
    with pytest.raises(ValueError, match="num_replicas=2 is given without rank"):
        RepeatedAugment(FEW, 2)
    with pytest.raises(ValueError, match="rank 7 is outside of a world of 2"):
        DistributedSampler(FEW, 2, 7)
