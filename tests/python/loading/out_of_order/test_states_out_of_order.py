"""States of ``in_order=False`` list what has overtaken: each batch comes exactly once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from slow_samples import BATCH, COUNT, Gate, Slow, dataset, loader, sorted_batches
from torch.utils.data import BatchSampler, RandomSampler

from headrace import DataLoader
from support import assert_same, same


def test_a_state_names_what_has_overtaken() -> None:
    """At every position while a batch is outstanding, into every kind of loader."""
    expected = list(loader(Gate(), in_order=True, shuffle=True))
    first = [int(labels[0]) for _, labels in expected]
    gate = Gate(first[0], first[4])
    ours = loader(gate, shuffle=True, num_workers=3)
    iterator, got = iter(ours), []
    for step in range(len(expected) - 2):
        got.append(next(iterator))
        state = ours.state_dict()
        assert (state["version"], state["position"], state["of_rank"]) == (4, 0, 0)
        done = {first.index(int(labels[0])) for _, labels in got}
        assert state["overtaking"] == sorted(done) and not done & {0, 4}
        if step not in (0, 3, len(expected) - 3):
            continue
        left = [one for number, one in enumerate(expected) if number not in done]
        for options in ({}, {"in_order": True}, {"in_order": True, "num_workers": 0}):
            resumed = loader(Gate(), shuffle=True, **options)
            resumed.load_state_dict(state)
            assert_same(resumed.reference(), left)
            resumed.verify()
            rest = list(resumed)
            assert_same(rest if options else sorted_batches(rest), left if options else sorted_batches(left))
            assert resumed.state_dict()["epoch"] == 1
    gate.go.set()
    assert_same(sorted_batches(got + list(iterator)), sorted_batches(expected))


ORDERS: dict[str, Any] = {
    "seed": lambda: {"shuffle": True, "seed": 5},
    "a generator": lambda: {"shuffle": True, "seed": None, "generator": torch.Generator().manual_seed(6)},
    "repeated samples": lambda: {
        "sampler": RandomSampler(
            range(COUNT), replacement=True, num_samples=70, generator=torch.Generator().manual_seed(6)
        )
    },
    "batches": lambda: {"batch_sampler": Batches(), "seed": 5},
    "a sampler with a state": lambda: {"sampler": Stateful(), "seed": 5},
}


class Batches:
    def __len__(self) -> int:
        return COUNT // 3

    def __iter__(self) -> Iterator[list[int]]:
        yield from BatchSampler(RandomSampler(range(COUNT), generator=torch.Generator().manual_seed(1)), 3, True)


class Stateful:
    """A sampler that goes on where its state says."""

    def __init__(self) -> None:
        self.done = 0

    def __len__(self) -> int:
        return COUNT

    def __iter__(self) -> Iterator[int]:
        begin, self.done = self.done, 0
        for number in range(begin, COUNT):
            self.done = number + 1
            yield (7 * number) % COUNT
        self.done = 0

    def state_dict(self) -> dict[str, Any]:
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = state["done"]


def killed_and_resumed(make: Any, rng: random.Random, kills: int) -> list[Any]:
    """The batches of an epoch whose process is killed and resumed at random positions, or of two where it ends."""
    got: list[Any] = []
    state = None
    for kill in range(kills + 1):
        ours = make()
        if state is not None:
            ours.load_state_dict(state)
        iterator = iter(ours)
        for batch in iterator:
            got.append(batch)
            state = ours.state_dict()
            if kill < kills and rng.random() < 0.3:
                break
        else:
            break
        ours.close()
    return got


@pytest.mark.parametrize("order", ORDERS)
def test_each_batch_comes_once_however_often_it_is_resumed(order: str) -> None:
    rng = random.Random(order)
    held = rng.sample(range(COUNT), 6)

    def make(in_order: bool = False) -> DataLoader[Any]:
        given: dict[str, Any] = {"num_workers": 3, "in_order": in_order, **ORDERS[order]()}
        if "batch_sampler" not in given:
            given["batch_size"] = BATCH
        return DataLoader(dataset(Slow(0.01, *held)), **given)

    expected = list(make(in_order=True))
    moved = 0
    for _ in range(8):
        got = killed_and_resumed(make, rng, 3)
        left = list(expected)
        for batch in got:
            left.pop(next(number for number, one in enumerate(left) if same(one, batch)))
        assert not left and len(got) == len(expected)
        moved += not same(got, expected)
    assert moved


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_resume_from_states_of_their_own(world: int) -> None:
    def make(rank: int, world: int = world, **options: Any) -> DataLoader[Any]:
        step = Slow(0.01, *range(rank, COUNT, 10)) if "in_order" not in options else Slow(0)
        return loader(step, shuffle=True, rank=rank, world_size=world, **options)

    for rank in range(world):
        rng, expected = random.Random(rank), list(make(rank, in_order=True))
        for _ in range(3):
            got = killed_and_resumed(lambda rank=rank: make(rank), rng, 2)
            assert_same(sorted_batches(got), sorted_batches(expected))
    ours = make(1)
    between = ours.state_dict()
    iterator = iter(ours)
    next(iterator)
    state = ours.state_dict()
    for other in (make(0), make(1, world + 1), make(0, in_order=True)):
        with pytest.raises(ValueError, match="with in_order=False each rank delivers in an order of its own"):
            other.load_state_dict(state)
        other.load_state_dict(between)
    list(iterator)
    make(0).load_state_dict(ours.state_dict())
    make(1, world + 1).load_state_dict(ours.state_dict())
    in_order = make(1, in_order=True)
    next(iter(in_order))
    make(0).load_state_dict(in_order.state_dict())
