"""Samplers with a state of their own, by torchdata's protocol, resume after the last delivered batch."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, Sampler

from headrace import DataLoader, ImageArray
from headrace import transforms as T
from headrace.sampler import ShardedSampler

COUNT = 24
DATA = ImageArray(np.random.default_rng(0).integers(0, 256, (COUNT, 9, 9, 3), dtype=np.uint8), list(range(COUNT)))
DATA.transform = T.Compose([T.RandomCrop(4), T.ToTensor()])


class Deck(Sampler[int]):
    """Shuffles with numpy's generator, which no loader knows; its state holds the order and the position."""

    def __init__(self, cards: int = COUNT) -> None:
        self.cards, self.dealt, self.resumed = cards, 0, False
        self.deck: list[int] = []

    def __len__(self) -> int:
        return self.cards

    def __iter__(self) -> Iterator[int]:
        if not self.resumed:
            self.deck, self.dealt = np.random.permutation(self.cards).tolist(), 0  # noqa: NPY002
        self.resumed = False
        while self.dealt < self.cards:
            self.dealt += 1
            yield self.deck[self.dealt - 1] % COUNT

    def state_dict(self) -> dict[str, Any]:
        return {"deck": self.deck, "dealt": self.dealt}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.deck, self.dealt = state["deck"], state["dealt"]
        self.resumed = bool(self.deck) and self.dealt < self.cards


class _Counting:
    """An iterator with a state, of a sampler without one."""

    def __init__(self) -> None:
        self.next = 0

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self.next == COUNT:
            raise StopIteration
        self.next += 1
        return (7 * self.next) % COUNT

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]


class Counting(Sampler[int]):
    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> _Counting:
        return _Counting()


class DeckOfBatches(Deck):
    """A batch sampler with a state."""

    def __len__(self) -> int:
        return self.cards // 3

    def __iter__(self) -> Iterator[Any]:
        cards = super().__iter__()
        while chosen := [card for _, card in zip(range(3), cards, strict=False)]:
            yield chosen


class DeckWithDiscards(Deck):
    """Its state is the object that it later changes itself, with a list in it."""

    inside: dict[str, Any] = {"cards": {"left": []}}  # noqa: RUF012 - each instance sets its own

    def __iter__(self) -> Iterator[int]:
        if not self.resumed:
            self.inside = {"cards": {"left": np.random.permutation(self.cards).tolist()}}  # noqa: NPY002
        self.resumed = False
        while left := self.inside["cards"]["left"]:
            yield left.pop() % COUNT

    def state_dict(self) -> dict[str, Any]:
        return self.inside

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inside, self.resumed = copy.deepcopy(state), bool(state["cards"]["left"])


MAKERS = {
    "nested state": lambda: {"sampler": DeckWithDiscards(), "batch_size": 4},
    "sampler": lambda: {"sampler": Deck(), "batch_size": 4},
    "named twice": lambda: {"sampler": Deck(2 * COUNT), "batch_size": 4},
    "single samples": lambda: {"sampler": Deck(), "batch_size": None},
    "iterator": lambda: {"sampler": Counting(), "batch_size": 4},
    "batch sampler": lambda: {"batch_sampler": DeckOfBatches()},
    "torch's batch sampler": lambda: {"batch_sampler": BatchSampler(Deck(), 4, False)},
    "dealt out": lambda: {"sampler": ShardedSampler(Deck(25), 3, 1), "batch_size": 2},
}


def values(batches: Any) -> list[tuple[Any, ...]]:
    return [(np.atleast_1d(labels).tolist(), images.double().sum().item()) for images, labels in batches]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_run_goes_on_where_it_was_cut(make: Callable[..., Any], workers: int) -> None:
    """The state of a loader or of its copy resumes a new loader or the same one, also if samples repeat."""

    def loader() -> DataLoader[Any]:
        return DataLoader(DATA, num_workers=workers, prefetch_factor=3 if workers else None, seed=1, **make())

    whole = loader()
    batches = iter(whole)
    values(batch for batch, _ in zip(batches, range(3), strict=False))
    state, copied = whole.state_dict(), pickle.loads(pickle.dumps(whole)).state_dict()
    rest = values(batches)
    assert rest
    for kept in (state, copied):
        other = loader()
        other.load_state_dict(pickle.loads(pickle.dumps(kept)))
        assert other.state_dict().keys() == state.keys()
        assert values(other) == rest
    whole.load_state_dict(state)
    assert values(whole) == rest


def test_the_next_epoch_is_the_samplers_own() -> None:
    loader = DataLoader(DATA, 4, sampler=Deck(), seed=1)
    np.random.seed(3)  # noqa: NPY002
    list(loader)
    state = loader.state_dict()
    np.random.seed(4)  # noqa: NPY002
    following = values(loader)
    other = DataLoader(DATA, 4, sampler=Deck(), seed=1)
    other.load_state_dict(state)
    np.random.seed(4)  # noqa: NPY002
    assert values(other) == following


def test_looking_ahead_leaves_a_sampler_as_it_was() -> None:
    loader = DataLoader(DATA, 4, sampler=Deck(), seed=1)
    batches = iter(loader)
    next(batches)
    sampler: Any = loader.sampler
    before = copy.deepcopy(sampler.state_dict())
    loader.verify(2)
    assert sampler.state_dict() == before and sampler.resumed is False
    assert loader._peek_epoch(1)[1][0].indices.shape == (4,)
    seen = [label for labels, _ in values(batches) for label in labels]
    assert len(seen) == COUNT - 4


class Bucketing(Sampler[list[int]]):
    """Draws ahead from a sampler with a state, and has no state itself."""

    def __init__(self, sampler: Sampler[int]) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        cards = list(self.sampler)
        yield from (cards[i : i + 4] for i in range(0, len(cards), 4))


def test_what_cannot_be_resumed_is_refused() -> None:
    loader = DataLoader(DATA, batch_sampler=Bucketing(Deck()))
    next(iter(loader))
    state = loader.state_dict()  # a trainer may request it at any time
    other = DataLoader(DATA, batch_sampler=Bucketing(Deck()))
    with pytest.raises(ValueError, match="order of Bucketing cannot be resumed: it draws ahead from Deck, which"):
        other.load_state_dict(state)


def test_a_state_of_a_sampler_that_lost_its_own() -> None:
    state = DataLoader(DATA, 4, sampler=Deck()).state_dict()

    class Deck_(Sampler[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(COUNT))

    Deck_.__qualname__ = Deck.__qualname__
    with pytest.raises(ValueError, match="the state contains a sampler's state, but Deck has no load_state_dict"):
        DataLoader(DATA, 4, sampler=Deck_()).load_state_dict(state)


@pytest.mark.parametrize("damage", [3, {"sampler": {}}, []])
def test_a_damaged_state_of_a_sampler(damage: Any) -> None:
    loader = DataLoader(DATA, 4, sampler=Deck())
    state = loader.state_dict() | {"sampler_state": damage}
    with pytest.raises(ValueError, match="the state is damaged: its sampler_state is"):
        loader.load_state_dict(state)


def test_torchdatas_samplers() -> None:
    samplers = pytest.importorskip("torchdata.stateful_dataloader.sampler", reason="torchdata is not installed")
    for make in (
        lambda: samplers.RandomSampler(DATA, generator=torch.Generator().manual_seed(3)),
        lambda: samplers.StatefulDistributedSampler(DATA, 2, 1, shuffle=True),
    ):
        loader = DataLoader(DATA, 3, sampler=make(), num_workers=2)
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        other = DataLoader(DATA, 3, sampler=make(), num_workers=2)
        other.load_state_dict(state)
        assert values(other) == values(batches)
