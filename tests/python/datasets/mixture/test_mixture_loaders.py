"""Mixtures in loaders: torch's order on every route, for any number of threads and ranks, and after any resume."""

from __future__ import annotations

import copy
import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mixtures import Rows, columns, mixture, numbers
from torch.utils.data import BatchSampler
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from headrace._loading.epoch.checkpoint import Identity, load_position, save_position
from headrace._loading.epoch.epochs import Epochs
from headrace._loading.epoch.order import EpochOrder
from headrace._reports.metrics.loader_snapshot import look_at
from headrace.datasets import Mixture
from headrace.sampler import MixtureSampler, ShardedSampler
from support import assert_same, blobs, evaluation, train

SIZE = 207  # samples of an epoch


def in_order(epoch: int, seed: int = 5, **options: Any) -> list[int]:
    sampler = MixtureSampler(mixture(**options), seed)
    sampler.set_epoch(epoch)
    return list(sampler)


def joined(loader: Any) -> list[int]:
    """The samples of a loader's batches."""
    return [*itertools.chain(*numbers(loader))]


def interleaved(ranks: list[list[list[int]]]) -> list[int]:
    """The samples of all ranks' batches in the order of one process."""
    return [one for step in zip(*ranks, strict=True) for same in zip(*step, strict=True) for one in same]


# ---- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", range(5))
def test_the_order_is_that_of_torchs_loader(workers: int) -> None:
    sampler = MixtureSampler(mixture(Rows), 5)
    theirs = TorchDataLoader(sampler.data_source, 16, sampler=sampler)
    ours = DataLoader(mixture(), 16, shuffle=True, seed=5, num_workers=workers)
    assert ours.native and len(ours) == 13
    for epoch in range(3):
        sampler.set_epoch(epoch)
        assert numbers(ours) == numbers(theirs)


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_workers_deliver_the_same(workers: int) -> None:
    loader = DataLoader(mixture(Rows), 16, shuffle=True, seed=5, num_workers=workers)
    assert loader.route == "deferred"
    for epoch in range(2):
        assert joined(loader) == in_order(epoch)
    assert loader.stats().mixture == mixture_counts(1, SIZE)


def mixture_counts(epoch: int, stop: int, seed: int = 5) -> dict[str, int]:
    which = np.searchsorted([100, 120], in_order(epoch, seed)[:stop], side="right")
    return dict(zip(("large", "small", "tiny"), np.bincount(which, minlength=3).tolist(), strict=True))


def test_samplers_that_are_given() -> None:
    made = mixture()
    sampler = MixtureSampler(made, 8, shuffle=False)
    expected = list(sampler)
    assert joined(DataLoader(made, 10, sampler=sampler)) == expected
    assert joined(DataLoader(made, batch_sampler=BatchSampler(sampler, 10, False))) == expected
    assert joined(DataLoader(made, 10, seed=1)) == expected  # without shuffle there is nothing random
    assert joined(DataLoader(made, 10, shuffle=True)) == in_order(0, seed=0)


@pytest.mark.parametrize("make", [columns, Rows])
@pytest.mark.parametrize("world", range(1, 9))
def test_ranks_share_one_order(world: int, make: Any) -> None:
    loaders = [DataLoader(mixture(make), 3, True, seed=5, rank=rank, world_size=world) for rank in range(world)]
    whole = in_order(0)
    padded = whole + whole[: -len(whole) % world]
    assert interleaved([numbers(loader) for loader in loaders]) == padded
    assert loaders[-1].stats().mixture == mixture_counts(0, SIZE)
    dropping = [
        DataLoader(mixture(make), 3, True, seed=5, rank=rank, world_size=world, drop_last=True) for rank in range(world)
    ]
    steps = len(whole) // world // 3
    assert interleaved([numbers(loader) for loader in dropping]) == whole[: steps * 3 * world]


@pytest.mark.parametrize("world", [1, 2, 5, 8])
def test_a_share_is_iterated_from_any_number(world: int) -> None:
    for drop_last in (False, True):
        for rank in range(world):
            sampler = ShardedSampler(MixtureSampler(mixture(), 5), world, rank, drop_last)
            share = list(sampler)
            order = in_order(0)
            assert share == sampler.share.select_items(sampler.share.even(order, order))
            assert len(share) == len(sampler)
            for start in (0, 1, len(share) - 1, len(share)):
                assert list(sampler.iter_from(start)) == share[start:]


def test_weights_of_later_epochs() -> None:
    made = mixture()
    loader = DataLoader(made, 16, True, seed=5, num_workers=1)
    first = numbers(loader)
    made.set_weights({"tiny": 100}, 1)
    assert list(itertools.chain(*first)) == in_order(0)
    assert joined(loader) == in_order(1, schedule={1: {"tiny": 100}})
    assert loader.stats().mixture["tiny"] == made.counts(1).samples[2] > 190
    assert "mixture  " in str(loader.explain()) and "tiny 199 (96.1%)" in str(loader.explain())


# ---- occurrences and images ------------------------------------------------------------------------------------------


def test_occurrences_are_those_that_would_be_counted() -> None:
    """Also of the samples that fill up the ranks' last batches: they count on from the most."""
    loader = DataLoader(mixture(), 5, True, seed=5, rank=1, world_size=4)
    _, batches = loader._peek_epoch()
    seen: dict[int, int] = {}
    expected = []
    for number, index in enumerate(in_order(0)):
        if number % 4 == 1:
            expected.append((index, seen.get(index, 0)))
        seen[index] = seen.get(index, 0) + 1
    found = [pair for one in batches for pair in zip(one.indices.tolist(), one.occurrences.tolist(), strict=True)]
    assert found == expected
    last = DataLoader(mixture(), 5, True, seed=5, rank=3, world_size=4)._peek_epoch()[1][-1]
    assert (int(last.indices[-1]), int(last.occurrences[-1])) == (in_order(0)[0], max(seen.values()))


def images(**options: Any) -> Mixture:
    """Three datasets, two of which have the same transform; one of pixels that are drawn."""
    return Mixture(
        {"a": (blobs(9, train(16)), 3), "b": (blobs(4, evaluation(20, 16)), 1), "c": (blobs(5, train(16)), 1)},
        **options,
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_images_are_the_oracles(workers: int) -> None:
    loader = DataLoader(images(epoch_size=40), 8, True, seed=3, num_workers=workers)
    assert loader.native and loader.verify(5).samples == 40
    batches = list(loader)
    loader.set_epoch(0)
    assert assert_same(batches, list(loader.reference())) == 5
    shared = [DataLoader(images(epoch_size=40), 2, True, seed=3, rank=rank, world_size=4) for rank in range(4)]
    for whole, *parts in zip(batches, *shared, strict=True):
        for rank, (some, labels) in enumerate(parts):
            assert some.equal(whole[0][rank::4]) and labels.equal(whole[1][rank::4])


def test_fixed_images_are_torchs() -> None:
    sizes = (20, 24, 28)
    made = Mixture({str(size): (blobs(7, evaluation(size, 16)), size) for size in sizes}, epoch_size=50)
    ours = DataLoader(made, 8, True, seed=2, num_workers=2)
    assert ours.native
    assert_same(ours, list(TorchDataLoader(made, 8, sampler=MixtureSampler(made, 2))))


def test_random_steps_of_torchs_workers_follow_the_sample() -> None:
    """Seeded by (seed, epoch, sample, occurrence): ranks and resumes change nothing."""

    class Random(Rows):
        def __getitem__(self, index: int) -> dict[str, int]:
            return {"x": super().__getitem__(index)["x"], "drawn": random.randrange(10**9)}

    def epoch(**options: Any) -> list[tuple[int, int]]:
        loader = DataLoader(mixture(Random), 3, True, seed=5, **options)
        return [(x, drawn) for one in loader for x, drawn in zip(one["x"].tolist(), one["drawn"].tolist(), strict=True)]

    whole = epoch()
    assert len(set(whole)) == len(whole)
    for world in (2, 5):
        ranks = [epoch(rank=rank, world_size=world) for rank in range(world)]
        assert [one for step in zip(*ranks, strict=True) for one in step][: len(whole)] == whole
    begun = DataLoader(mixture(Random), 3, True, seed=5, rank=1, world_size=2)
    iterator = iter(begun)
    for _ in range(7):
        next(iterator)
    resumed = DataLoader(mixture(Random), 3, True, seed=5, rank=1, world_size=2)
    resumed.load_state_dict(begun.state_dict())
    rest = [(x, y) for one in resumed for x, y in zip(one["x"].tolist(), one["drawn"].tolist(), strict=True)]
    assert rest == epoch(rank=1, world_size=2)[21:]


# ---- resume ----------------------------------------------------------------------------------------------------------


class Rank:
    """The order and the state of one rank's loader, as `DataLoader` makes them, without its threads."""

    def __init__(self, made: Mixture, seed: int, rank: int, world: int, batch_size: int) -> None:
        self.sampler = ShardedSampler(MixtureSampler(made, seed), world, rank)
        self.batch_sampler = BatchSampler(self.sampler, batch_size, False)
        self.generator = None
        self.epochs = Epochs(self, 123, seed, keeps_base_seed=False)
        self.identity = Identity.of(seed, 123, "", self.epochs.order(), None, 0)

    def resume(self, state: Any) -> None:
        self.epochs.resume(load_position(state, self.identity))

    def state(self) -> Any:
        return copy.deepcopy(save_position(self.identity, self.epochs.position()))


def test_300_chains_of_kills_on_changing_worlds() -> None:
    """Each sample of two epochs exactly once, in order, with its occurrence; batch sizes change with the world."""
    chance = random.Random(0)
    options: Any = {"epoch_size": 90, "schedule": {1: {"tiny": 9}}}
    made = mixture(**options)
    for chain in range(300):
        state: Any = None
        epochs: list[list[tuple[int, int]]] = [[], []]
        kills, batch_sizes = chance.randrange(1, 4), [chance.randrange(1, 5) for _ in range(9)]
        while True:
            world = chance.randrange(1, 9)
            ranks = [Rank(made, chain, rank, world, batch_sizes[world]) for rank in range(world)]
            if state is not None:
                for one in ranks:
                    one.resume(state)
            if run(ranks, epochs, chance.randrange(1, 20) if kills else 1000):
                break
            kills -= 1
            state = chance.choice(ranks).state()
        for epoch, found in enumerate(epochs):
            order = in_order(epoch, chain, **options)
            assert [index for index, _ in found[: len(order)]] == order
            assert len(found) < len(order) + 8
            assert len(set(found)) == len(found)  # of a sample that occurs again, no occurrence twice


def run(ranks: list[Rank], epochs: list[list[tuple[int, int]]], steps: int) -> bool:
    """Lets all ranks take steps; returns whether the last epoch has ended."""
    while True:
        begun = [one.epochs.begin() for one in ranks]
        epoch = begun[0][0].epoch
        while (step := [next(order, None) for _, order in begun]) != [None] * len(ranks):
            for progress, _ in begun:
                progress.settled += 1
            pairs = [
                zip(one.indices.tolist(), one.occurrences.tolist(), strict=True) for one in step if one is not None
            ]
            epochs[epoch] += [one for same in zip(*pairs, strict=True) for one in same]
            steps -= 1
            if not steps:
                return False
        for progress, _ in begun:
            progress.finish()
        if epoch == 1:
            return True


@pytest.mark.parametrize("make", [columns, Rows])
@pytest.mark.parametrize("drop_last", [False, True])
def test_loaders_resume_on_another_number_of_ranks(make: Any, drop_last: bool) -> None:
    """Again and again, on both routes; each loader's own random numbers follow the sample."""
    chance = random.Random(3)
    for seed in range(12):
        state: Any = None
        found: list[int] = []
        while True:
            world, batch_size = chance.choice([(1, 6), (2, 5), (3, 4), (4, 2)])
            loaders = [
                DataLoader(mixture(make), batch_size, True, seed=seed, drop_last=drop_last, rank=rank, world_size=world)
                for rank in range(world)
            ]
            if state is not None:
                for one in loaders:
                    one.load_state_dict(state)
            iterators = [iter(one) for one in loaders]
            steps = chance.randrange(1, 12)
            batches = [numbers(itertools.islice(one, steps)) for one in iterators]
            found += interleaved(batches)
            counts = mixture_counts(0, min(len(found), SIZE), seed)
            if batches[0]:  # otherwise the epoch was complete, but for what drop_last drops
                assert all(one.stats().mixture == counts for one in loaders)
            if len(batches[0]) < steps:
                break
            state = copy.deepcopy(chance.choice(loaders).state_dict())
        order = in_order(0, seed)
        assert found[:SIZE] == order[: len(found)]
        assert SIZE - 6 * 4 < len(found) <= SIZE if drop_last else SIZE <= len(found) < SIZE + 4


def test_other_samplers_keep_their_ranks_where_torch_delivers() -> None:
    """Their states count a rank's batches."""
    rows = Rows(40)
    begun = DataLoader(rows, 4, True, seed=5, rank=0, world_size=2)
    next(iter(begun))
    other = DataLoader(rows, 4, True, seed=5, rank=0, world_size=4)
    other.load_state_dict(begun.state_dict())
    with pytest.raises(ValueError, match="sharded over another number of ranks"):
        iter(other)


@pytest.mark.parametrize("make", [columns, Rows])
def test_a_resumed_loader_has_the_remaining_batches(make: Any) -> None:
    """Also where torch delivers, with the same number of ranks."""
    for delivered in (0, 1, 7, 12):
        loader = DataLoader(mixture(make), 16, True, seed=5)
        loader.set_epoch(1)
        iterator = iter(loader)
        before = [next(iterator)["x"].tolist() for _ in range(delivered)]
        again = DataLoader(mixture(make), 16, True, seed=5)
        again.load_state_dict(loader.state_dict())
        assert [*itertools.chain(*before), *joined(again)] == in_order(1)


def test_a_resume_skips_without_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """900 million of 10**9 samples, on both routes, also with ranks."""
    taken: list[int] = []
    original = MixtureSampler.iter_from
    monkeypatch.setattr(
        MixtureSampler,
        "iter_from",
        lambda self, start: taken.append(start) or original(self, start),  # type: ignore[func-returns-value]
    )

    def made(world: int) -> Any:
        parts = {"a": (Rows(3 * 10**9), 2.0), "b": (Rows(10**8), 1.0)}
        return DataLoader(Mixture(parts, epoch_size=10**9), 100, True, seed=1, rank=0, world_size=world)

    for world in (1, 4):
        loader, again = made(world), made(world)
        next(iter(loader))
        state = loader.state_dict()  # as it is 900 million samples later
        state["headrace"]["drawn"] = state["_num_yielded"] = state["_sampler_iter_yielded"] = 9_000_000 // world
        again.load_state_dict(state)
        iterator = iter(again)
        index = next(original(MixtureSampler(again.dataset, 1), 900_000_000))
        assert next(iterator)["x"][0] == index % (3 * 10**9)
        assert 900_000_000 in taken
        counted = again.stats().mixture
        assert sum(counted.values()) == 900_000_000 + 100 * world
        assert abs(counted["a"] - 2 * counted["b"]) < 300


def test_what_does_not_fit_a_state() -> None:
    loader = DataLoader(mixture(), 4, True, seed=5)
    next(iter(loader))
    state = loader.state_dict()
    others: list[dict[str, Any]] = [{"epoch_size": 206}, {"temperature": 2.0}, {"schedule": {3: {"tiny": 2}}}]
    for options in others:
        with pytest.raises(ValueError, match="shuffles or samples in another way"):
            DataLoader(mixture(**options), 4, True, seed=5).load_state_dict(state)
    with pytest.raises(ValueError, match="shuffles or samples in another way"):
        DataLoader(mixture(), 4, seed=5).load_state_dict(state)


def test_an_order_does_not_count_what_a_sampler_knows() -> None:
    order = EpochOrder(MixtureSampler(mixture(), 5), False, 123, DataLoader(mixture(), 4)._epochs.order().cut)
    assert order._occurrences is None and order._planned is not None


def test_reports_of_a_dataset_without_a_length(tmp_path: Path) -> None:
    loader = DataLoader(images(epoch_size=40), 8, True, seed=3, num_workers=1)
    batches = list(loader)
    found = look_at(loader, 5, judged=False)
    assert found.samples is None and found.trouble == "" and found.stats is not None
    assert found.stats.mixture == {"a": 24, "b": 8, "c": 8}
    assert len(batches) == 5
    assert repr(loader).startswith("DataLoader(Mixture, batch_size=8")
    loader.report(tmp_path / "page.html", batches=2)
    assert "Mixture" in (tmp_path / "page.html").read_text()
    assert loader.stats().as_dict()["mixture"] == loader.stats().mixture
    assert "samples of the epoch so far, on all ranks: a 24, b 8, c 8" in str(loader.stats())
