"""Ranks share an epoch: the same global batches for every number of ranks, no sample lost or repeated."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, RandomSampler, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler as TorchDistributedSampler

from headrace import DataLoader, ImageArray
from headrace import transforms as T
from headrace.sampler import DistributedSampler, PermutationSampler, RepeatedAugment, ShardedSampler
from rank_loaders import FEW, ranks, steps, whole
from support import assert_same, blobs, train

pytestmark = pytest.mark.slow

PRIME = 10_007
TINY = T.Compose([T.RandomHorizontalFlip(), T.ToTensor()])
MANY = ImageArray(
    torch.randint(0, 256, (PRIME, 2, 2, 3), dtype=torch.uint8, generator=torch.Generator()), range(PRIME), TINY
)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_global_batches_for_every_number_of_ranks(workers: int, shuffle: bool) -> None:
    """24 samples: pixels, labels and order; three epochs."""
    data = blobs(24, train(24))
    alone = DataLoader(data, 12, shuffle, num_workers=workers, seed=3)
    worlds = {size: ranks(size, data, batch_size=12 // size, shuffle=shuffle, seed=3) for size in (2, 3)}
    for _ in range(3):
        expected = list(alone)
        for loaders in worlds.values():
            assert_same(whole(loaders), expected)


@pytest.mark.parametrize(("size", "count"), [(2, 21), (3, 22)])
def test_what_follows_an_end_that_does_not_go_round(size: int, count: int) -> None:
    """The incomplete end is filled up with the order's first samples, with new draws, or it is dropped."""
    data = blobs(count, train(24))
    alone = list(DataLoader(data, 6, True, seed=3))
    labels = torch.cat([batch[1] for batch in alone])
    images = torch.cat([batch[0] for batch in alone])
    padded = -(-count // size) * size
    made = whole(ranks(size, data, batch_size=6 // size, shuffle=True, seed=3))
    assert torch.equal(torch.cat([batch[1] for batch in made]), torch.cat([labels, labels[: padded - count]]))
    assert torch.equal(torch.cat([batch[0] for batch in made])[:count], images)
    again = torch.cat([batch[0] for batch in made])[count:]
    assert len(again) == padded - count > 0
    assert all(not torch.equal(one, first) for one, first in zip(again, images, strict=False))
    dropped = whole(ranks(size, data, batch_size=6 // size, shuffle=True, seed=3, drop_last=True))
    assert_same(dropped, [batch for batch in alone if len(batch[1]) == 6])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_prime_number_of_samples(size: int, drop_last: bool) -> None:
    loaders = ranks(size, MANY, batch_size=64, shuffle=True, seed=1, drop_last=drop_last)
    batches = [list(loader) for loader in loaders]
    assert len({len(one) for one in batches}) == 1 and len(batches[0]) == len(loaders[0])
    seen = Counter(int(label) for one in batches for batch in one for label in torch.as_tensor(batch[1]).reshape(-1))
    if drop_last:
        left_out = PRIME % (64 * size)
        assert set(seen.values()) == {1} and len(seen) == PRIME - left_out
    else:
        assert len(seen) == PRIME and sum(seen.values()) == -(-PRIME // size) * size
        assert set(seen.values()) <= {1, 2}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_samplers_alone_share_a_prime_number_of_samples(size: int, drop_last: bool) -> None:
    """The numbers of samples are those of torch's sampler, the orders those of the loader."""
    for epoch in (0, 1):
        parts = []
        for rank in range(size):
            ours = DistributedSampler(range(PRIME), size, rank, seed=5, drop_last=drop_last)
            theirs: Any = TorchDistributedSampler(range(PRIME), size, rank, drop_last=drop_last)  # type: ignore[arg-type]
            ours.set_epoch(epoch)
            parts.append(list(ours))
            assert len(parts[-1]) == len(ours) == len(theirs)
        seen = Counter(index for part in parts for index in part)
        over = PRIME % size
        if drop_last:
            assert set(seen.values()) == {1} and len(seen) == PRIME - over
        else:
            assert len(seen) == PRIME and sum(seen.values()) == PRIME + (size - over if over else 0)
        order = [index for step in zip(*parts, strict=True) for index in step]
        loader = DataLoader(MANY, PRIME, True, seed=5)
        loader.set_epoch(epoch)
        assert order[: PRIME - over] == next(iter(loader))[1].tolist()[: PRIME - over]


@pytest.mark.parametrize("then", [1, 2, 3])
@pytest.mark.parametrize("now", [1, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_resume_in_a_world_of_another_size(then: int, now: int, drop_last: bool) -> None:
    """If the size of the global batch stays the same, the same global batches and epochs follow."""
    data = blobs(26, train(24))
    options: dict[str, Any] = {"shuffle": True, "seed": 3, "drop_last": drop_last}
    alone = DataLoader(data, 6, **options)
    expected, following = list(alone), list(alone)
    before = ranks(then, data, batch_size=6 // then, **options)
    iterators = [iter(loader) for loader in before]
    for step in range(len(expected)):
        states = [loader.state_dict() for loader in before]
        assert all(state["position"] == step for state in states)
        after = ranks(now, data, batch_size=6 // now, **options)
        for rank, loader in enumerate(after):
            loader.load_state_dict(states[rank % then])
        rest = whole(after)
        for made, known in zip(rest, expected[step:], strict=True):  # the end may be filled up
            assert_same([[part[: len(known[1])] for part in made]], [known])
        if now == 1 or not 26 % now:
            assert_same(whole(after), following)
        [next(one) for one in iterators]


def test_resume_twice_and_with_another_global_batch() -> None:
    """The remaining samples are delivered exactly once, whatever the sizes of the steps."""
    options = {"shuffle": True, "seed": 3}
    seen = []
    state = None
    for size, batch_size, taken in ((2, 5, 3), (3, 7, 20), (2, 11, 6), (1, 64, 10**6)):
        loaders = ranks(size, MANY, batch_size=batch_size, **options)
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
        iterators = [iter(loader) for loader in loaders]
        for _ in range(taken):
            batches: list[Any] = [next(one, None) for one in iterators]
            if batches[0] is None:
                break
            seen += [label for _, labels in batches for label in labels.tolist()]
        state = loaders[0].state_dict()
    assert sorted(seen) == list(range(PRIME))


@pytest.mark.parametrize("now", [1, 2, 3])
def test_a_resumed_iterator_is_as_long_as_its_whole_epoch(now: int) -> None:
    """As in torchdata's StatefulDataLoader, with any number of ranks."""
    before = ranks(2, MANY, batch_size=5, shuffle=True, seed=3)[0]
    iterator: Any = iter(before)
    for _ in range(7):
        next(iterator)
    after = ranks(now, MANY, batch_size=5, shuffle=True, seed=3)[0]
    after.load_state_dict(before.state_dict())
    resumed: Any = iter(after)
    assert len(iterator) == len(before) == 1001
    assert len(resumed) == len(after) == -(-PRIME // (5 * now))
    passed = sum(1 for _ in resumed)
    assert passed == -(-(PRIME - 7 * 2 * 5) // (5 * now))
    assert len(resumed) == len(after)


def test_a_finished_epoch_is_not_begun_again_by_its_left_out_end() -> None:
    loaders = ranks(2, batch_size=4, shuffle=True, seed=3, drop_last=True)  # 22 samples: 2 steps of 8
    iterators = [iter(loader) for loader in loaders]
    for _ in range(2):
        [next(one) for one in iterators]
    alone = DataLoader(FEW, 4, True, seed=3, drop_last=True)
    alone.load_state_dict(loaders[0].state_dict())
    assert list(alone) == [] and len(list(alone)) == 5


def test_repeated_samples_are_augmented_alike_on_every_number_of_ranks() -> None:
    def sampler() -> WeightedRandomSampler:
        return WeightedRandomSampler([1.0] * 22, 24, generator=torch.Generator().manual_seed(1))

    alone = list(DataLoader(FEW, 12, sampler=sampler(), seed=3))
    assert len(torch.cat([labels for _, labels in alone]).unique()) < 24
    for size in (2, 3):
        loaders = [
            DataLoader(FEW, 12 // size, sampler=sampler(), seed=3, rank=rank, world_size=size) for rank in range(size)
        ]
        assert_same(whole(loaders), alone)


@pytest.mark.parametrize("size", [2, 3])
def test_batches_of_a_batch_sampler_are_dealt_out(size: int) -> None:
    def batches() -> BatchSampler:
        return BatchSampler(RandomSampler(FEW, generator=torch.Generator().manual_seed(1)), 4, False)

    alone = list(DataLoader(FEW, batch_sampler=batches(), seed=3))
    loaders = [DataLoader(FEW, batch_sampler=batches(), seed=3, rank=rank, world_size=size) for rank in range(size)]
    assert {len(loader) for loader in loaders} == {-(-len(alone) // size)}
    made = [batch for step in steps(loaders) for batch in step]
    assert_same(made[: len(alone)], alone)
    again = [batch[1].tolist() for batch in made[len(alone) :]]
    assert again == [batch[1].tolist() for batch in alone][: -len(alone) % size]


@pytest.mark.parametrize(("then", "now"), [(1, 2), (2, 1), (2, 3)])
def test_dealt_out_batches_resume_in_a_world_of_another_size(then: int, now: int) -> None:
    def loaders(size: int, batch_size: int = 2) -> list[DataLoader]:
        def batches() -> BatchSampler:
            return BatchSampler(RandomSampler(FEW, generator=torch.Generator().manual_seed(1)), batch_size, False)

        return [DataLoader(FEW, batch_sampler=batches(), seed=3, rank=rank, world_size=size) for rank in range(size)]

    expected = list(loaders(1)[0])
    before = loaders(then)
    iterators = [iter(one) for one in before]
    made = [next(one) for _ in range(2) for one in iterators]
    after = loaders(now)
    for one in after:
        one.load_state_dict(before[0].state_dict())
    made += [batch for step in steps(after) for batch in step]
    assert_same(made[: len(expected)], expected)
    with pytest.raises(ValueError, match=r"saved 'batches of 2 of RandomSampler.* now 'batches of 3 of RandomSampler"):
        loaders(now, 3)[0].load_state_dict(before[0].state_dict())


def test_a_distributed_sampler_within_a_batch_sampler() -> None:
    alone = list(DataLoader(FEW, 6, True, seed=3, drop_last=True))
    made = whole(
        [
            DataLoader(FEW, batch_sampler=BatchSampler(DistributedSampler(FEW, 2, rank, seed=3), 3, True), seed=3)
            for rank in range(2)
        ]
    )
    assert_same(made, alone)


def test_the_oracle_and_out_transforms_of_a_rank() -> None:
    def noise(batch: list[torch.Tensor]) -> list[torch.Tensor]:
        return [batch[0] + torch.rand(()), batch[1]]

    firsts = set()
    for loader in ranks(3, batch_size=2, shuffle=True, seed=3, out_transform=noise):
        assert "0 differ" in str(loader.verify())
        expected = list(loader.reference())
        assert_same(loader, expected)
        plain = DataLoader(FEW, 2, True, seed=3, rank=loader._own.world.rank, world_size=3)
        firsts.add(float((expected[0][0] - next(iter(plain))[0]).mean()))
    assert len(firsts) == 3  # each rank draws other numbers


@pytest.mark.parametrize("size", [1, 2, 3])
def test_repeated_augmentation(size: int) -> None:
    """Copies of a sample are in one global batch, differ, and are the same for every number of ranks."""
    alone = list(DataLoader(FEW, 12, sampler=RepeatedAugment(FEW, seed=4), seed=4))
    labels = torch.cat([one for _, one in alone])
    counts = Counter(labels.tolist())
    assert len(labels) == 22 and len(counts) == 8 and sorted(counts.values()) == [1] + [3] * 7
    images = torch.cat([one for one, _ in alone])
    for place in range(0, 21, 3):
        assert labels[place] == labels[place + 1] == labels[place + 2]
        assert not torch.equal(images[place], images[place + 1])
        assert not torch.equal(images[place + 1], images[place + 2])
    loaders = [
        DataLoader(FEW, 12 // size, sampler=RepeatedAugment(FEW, size, rank, seed=4), seed=4) for rank in range(size)
    ]
    made = whole(loaders)
    assert_same([[part[: len(known[1])] for part in made] for made, known in zip(made, alone, strict=True)], alone)
    second = torch.cat([batch[1] for batch in whole(loaders)])
    assert len(second) == -(-22 // size) * size and set(second.tolist()) != set(labels.tolist())
    assert_same(list(loaders[-1].reference()), list(loaders[-1]))


def test_chains_of_jobs_of_any_size_deliver_what_is_left() -> None:
    """Sixty random runs, each cut several times and continued with another number of ranks and another batch size."""
    chance = random.Random(5)
    for number in range(60):
        count = chance.randrange(1, 60)
        data = ImageArray(torch.zeros(count, 2, 2, 3, dtype=torch.uint8), range(count), TINY)
        seen, state, left, size, batch_size = [], None, True, 0, 0
        while left:
            if (now := chance.randrange(1, 5)) != size:  # only then may the batch size change
                size, batch_size = now, chance.randrange(1, 9)
            loaders = []
            for rank in range(size):
                order: dict[str, Any] = (
                    {"sampler": PermutationSampler(data, seed=number)} if number % 2 else {"shuffle": True}
                )
                loaders.append(DataLoader(data, batch_size, seed=3, rank=rank, world_size=size, **order))
            for loader in loaders:
                if state is not None:
                    loader.load_state_dict(state)
            iterators = [iter(loader) for loader in loaders]
            for _ in range(chance.randrange(1, 5)):
                step: list[Any] = [next(iterator, None) for iterator in iterators]
                left = step[0] is not None
                assert all((batch is not None) == left for batch in step)  # ranks end together
                if not left:
                    break
                assert len({len(labels) for _, labels in step}) == 1
                parts = zip(*(labels.tolist() for _, labels in step), strict=True)
                seen += [label for every in parts for label in every]
            states = [loader.state_dict() for loader in loaders]
            assert len({(one["offset"], one["position"]) for one in states}) == 1
            state = states[0]
        # Each sample once; the end may be filled up with the first samples.
        assert sorted(seen[:count]) == list(range(count))
        assert seen[count:] == (seen[:count] * 4)[: len(seen) - count] and len(seen) - count < 4


def test_a_share_of_a_computed_order_is_not_stored() -> None:
    whole = PermutationSampler(10**10 + 1, seed=2)
    for rank, last in ((0, 10**10), (5, 0)):  # the last item of rank 5 repeats one of the first
        share = ShardedSampler(whole, 8, rank)
        assert next(iter(share)) == whole.at([rank])[0]
        assert list(share.iter_from(len(share) - 1)) == [whole.at([last if rank == 0 else rank - 1])[0]]
    with pytest.raises(AttributeError):
        _ = ShardedSampler(range(5), 2, 0).iter_from
