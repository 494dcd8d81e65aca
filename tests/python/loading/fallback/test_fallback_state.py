"""On the fallback, a loader that loads a state delivers exactly the remaining batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, RandomSampler, WeightedRandomSampler

from headrace import DataLoader, EncodedImages
from headrace import sampler as samplers
from headrace import transforms as T
from stateful_datasets import BatchesOfDeck, Counting, Deck, OfIterator, Plain, Resumed, Stepping, Stream, drawing, same
from support import pictures

pytestmark = pytest.mark.processes

INDEXED: dict[str, Callable[..., DataLoader]] = {
    "in order": lambda **more: DataLoader(Plain(), 3, **more),
    "shuffled": lambda **more: DataLoader(Plain(), 3, True, **more),
    "shuffled by a generator": lambda **more: DataLoader(
        Plain(), 3, True, generator=torch.Generator().manual_seed(3), **more
    ),
    "shuffled by a seed": lambda **more: DataLoader(Plain(), 3, True, seed=5, **more),
    "with replacement": lambda **more: DataLoader(Plain(), 3, sampler=RandomSampler(range(20), True), **more),
    "weighted": lambda **more: DataLoader(Plain(), 3, sampler=WeightedRandomSampler([1.0, 2.0] * 10, 20), **more),
    "one by one": lambda **more: DataLoader(Plain(), None, True, **more),
    "dropping the last": lambda **more: DataLoader(Plain(), 3, True, drop_last=True, **more),
    "batches that are listed": lambda **more: DataLoader(Plain(), batch_sampler=[[1, 2], [3], [4, 5, 6], [7]], **more),
    "a permutation": lambda **more: DataLoader(
        Plain(), 3, sampler=samplers.PermutationSampler(range(20), seed=1), **more
    ),
    "one that jumps": lambda **more: DataLoader(
        Plain(), batch_sampler=BatchSampler(samplers.PermutationSampler(range(20), seed=1), 3, False), **more
    ),
    "a sampler with a state": lambda **more: DataLoader(Plain(), 3, sampler=Deck(), **more),
    "one by one from it": lambda **more: DataLoader(Plain(), None, sampler=Deck(), **more),
    "batches with a state": lambda **more: DataLoader(Plain(), batch_sampler=BatchesOfDeck(), **more),
    "an iterator with a state": lambda **more: DataLoader(Plain(), 3, sampler=Stepping(), **more),
    "a dataset with a state": lambda **more: DataLoader(Counting(), 3, True, collate_fn=same, **more),
    "both": lambda **more: DataLoader(Counting(), 3, sampler=Deck(), collate_fn=same, **more),
    "a native dataset": lambda **more: DataLoader(
        EncodedImages(pictures(4) * 5, range(20), T.Compose([T.Resize((2, 2)), T.ToTensor()])),
        3,
        True,
        collate_fn=lambda batch: [label for _, label in batch],
        **more,
    ),
}
STREAMS: dict[str, Callable[..., DataLoader]] = {
    "without a state": lambda **more: DataLoader(Stream(), 2, collate_fn=drawing, **more),
    "of the dataset": lambda **more: DataLoader(Resumed(), 2, collate_fn=same, **more),
    "of the iterator": lambda **more: DataLoader(OfIterator(), 2, collate_fn=drawing, **more),
    "one by one": lambda **more: DataLoader(OfIterator(), None, **more),
    "full batches": lambda **more: DataLoader(Resumed(), 2, drop_last=True, collate_fn=same, **more),
}


def plain(batches: Any) -> list[Any]:
    return [batch.tolist() if isinstance(batch, torch.Tensor) else batch for batch in batches]


def goes_on(make: Callable[[], DataLoader], positions: Any, epochs: int = 2) -> None:
    """Asserts that a loader resumed at each position delivers the rest of the epoch, and the later epochs."""
    for position in positions:
        torch.manual_seed(7)
        loader = make()
        list(loader)
        batches = iter(loader)
        for _ in range(position):
            next(batches)
        state = loader.state_dict()
        json.dumps(state, default=lambda value: value.tolist())
        users = torch.get_rng_state()
        rest = plain(batches)
        later = [plain(loader) for _ in range(epochs - 1)]
        torch.manual_seed(99)  # as in another process, whose user restores the generator below
        other = make()
        other.load_state_dict(state)
        torch.set_rng_state(users)
        assert other.upcoming_epoch == 1
        assert str(other.state_dict()) == str(state)
        again = iter(other)
        assert plain(again) == rest, position
        assert [plain(other) for _ in range(epochs - 1)] == later, position
        loader.close()
        other.close()


@pytest.mark.parametrize("make", INDEXED.values(), ids=INDEXED)
def test_every_position_of_an_epoch(make: Callable[..., Any]) -> None:
    goes_on(make, range(8) if len(make()) == 7 else range(0, len(make()), 2))


@pytest.mark.parametrize("name", ["shuffled", "both", "batches with a state", "an iterator with a state"])
@pytest.mark.parametrize("every", [1, 3])
def test_with_workers(name: str, every: int) -> None:
    goes_on(lambda: INDEXED[name](num_workers=2, snapshot_every_n_steps=every), [0, 5, 7], epochs=1)


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
def test_streams(make: Callable[..., Any]) -> None:
    goes_on(make, [0, 1, 4], epochs=1)


@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("every", [1, 7])
def test_streams_of_workers_that_end_one_after_the_other(make: Callable[..., Any], every: int) -> None:
    goes_on(lambda: make(num_workers=3, snapshot_every_n_steps=every), [2, 9], epochs=1)


def test_at_the_end_of_an_epoch_the_next_one_is_next() -> None:
    for make in (INDEXED["shuffled"], INDEXED["both"], STREAMS["of the dataset"], STREAMS["of the iterator"]):
        torch.manual_seed(3)
        loader = make()
        list(loader)
        last_taken = loader.state_dict()
        users = torch.get_rng_state()
        following = [plain(loader) for _ in range(2)]
        other = make()
        other.load_state_dict(last_taken)
        torch.set_rng_state(users)
        assert other.upcoming_epoch == 1
        assert [plain(other) for _ in range(2)] == following


def test_the_last_batch_is_not_the_end() -> None:
    for make in (INDEXED["shuffled"], INDEXED["both"], STREAMS["of the dataset"]):
        loader = make()
        for _ in loader:
            state = loader.state_dict()
        other = make()
        other.load_state_dict(state)
        assert list(other) == [] and other.upcoming_epoch == 1


def test_no_sample_is_made_that_is_behind() -> None:
    loader = INDEXED["shuffled"]()
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    other = INDEXED["shuffled"]()
    other.load_state_dict(loader.state_dict())
    again: Any = iter(other)
    data: Any = other.dataset
    assert data.fetched == 0 and len(again) == len(other) == 7
    assert len(list(again)) == 3 and data.fetched == 8


def test_the_default_generator_is_its_users() -> None:
    def run(loader: DataLoader, drawn: int) -> tuple[list[Any], float]:
        batches = iter(loader)
        torch.rand(drawn)
        return plain(batches), float(torch.rand(()))

    for drawn in (0, 3):
        torch.manual_seed(1)
        loader = INDEXED["shuffled"]()
        batches = iter(loader)
        torch.rand(drawn)  # torch's sampler draws with the first batch
        first = plain([next(batches)])
        state, users = loader.state_dict(), torch.get_rng_state()
        whole = first + plain(batches), float(torch.rand(()))
        for moved in (False, True):
            if not moved:
                torch.set_rng_state(users)
            before = torch.get_rng_state()
            other = INDEXED["shuffled"]()
            other.load_state_dict(state)
            assert torch.equal(torch.get_rng_state(), before)
            rest, after = run(other, 0)
            assert first + rest == whole[0] and (after == whole[1]) is not moved


def test_nothing_is_drawn_for_a_state() -> None:
    for make in (INDEXED["shuffled"], INDEXED["a sampler with a state"]):
        torch.manual_seed(2)
        loader = make()
        states = [loader.state_dict() for _ in range(2)]
        assert states[0] == states[1]
        whole = plain(loader)
        torch.manual_seed(2)
        assert plain(make()) == whole
        torch.manual_seed(5)
        other = make()
        other.load_state_dict(states[0])
        assert plain(other) == whole


def test_a_batch_that_raised_is_behind() -> None:
    class Broken(Plain):
        def __getitem__(self, index: int) -> int:
            if index == 4:
                raise KeyError(index)
            return index

    for workers in (0, 1):
        loader = DataLoader(Broken(), 2, num_workers=workers)
        batches = iter(loader)
        next(batches), next(batches)
        with pytest.raises(KeyError):
            next(batches)
        other = DataLoader(Broken(), 2, num_workers=workers)
        other.load_state_dict(loader.state_dict())
        assert plain(other)[0] == plain([next(batches)])[0] == [6, 7]


def test_without_workers_states_any_number_of_them_goes_on() -> None:
    torch.manual_seed(4)
    loader = INDEXED["shuffled"](num_workers=1)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = plain(batches)
    for workers in (0, 2):
        other = INDEXED["shuffled"](num_workers=workers)
        other.load_state_dict(state)
        assert plain(other) == rest


def test_set_epoch_and_an_empty_state_forget_what_was_loaded() -> None:
    loader = INDEXED["shuffled by a seed"]()
    orders = [plain(loader) for _ in range(2)]
    next(iter(loader))
    state = loader.state_dict()
    for forget in (lambda one: one.load_state_dict({}), lambda one: one.set_epoch(0)):
        other = INDEXED["shuffled by a seed"]()
        other.load_state_dict(state)
        assert other._resumes and other.upcoming_epoch == 2
        forget(other)
        assert not other._resumes
        other.set_epoch(0)
        assert [plain(other) for _ in range(2)] == orders
    other.load_state_dict(state)
    other.set_epoch(2)
    assert other._resumes and len(list(other)) == 6
