"""A dataset's large state costs nothing while nobody asks for it, and a loader goes on from it exactly."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from headrace import DataLoader
from headrace._loading.fallback.worker_wrappers import bytes_of

pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
LARGE = 50_000  # numbers of a table


class Counting(Dataset[Any]):
    """Each sample tells how many its process has made, which is a part of the state, as is a table."""

    def __init__(self, size: int = LARGE) -> None:
        self.table, self.made = torch.zeros(size), 0
        self.asked = multiprocessing.Value("i", 0)

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> tuple[int, int]:
        self.made += 1
        self.table[0] += 1
        return index, self.made

    def state_dict(self) -> dict[str, Any]:
        with self.asked.get_lock():
            self.asked.value += 1
        return {"table": self.table, "made": self.made}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.table, self.made = state["table"].clone(), state["made"]
        assert self.table[0] == self.made or self.made == 0


class Streaming(IterableDataset[Any]):
    """Numbers of which each process yields its own; the state has a table."""

    def __init__(self) -> None:
        self.table, self.made = torch.zeros(LARGE), 0
        self.asked = multiprocessing.Value("i", 0)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        info = get_worker_info()
        assert info is not None
        for number in range(info.id, 24, info.num_workers):
            self.made += 1
            yield number, self.made

    def state_dict(self) -> dict[str, Any]:
        with self.asked.get_lock():
            self.asked.value += 1
        return {"table": self.table, "made": self.made}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.table, self.made = state["table"], state["made"]


def values(batch: Any) -> list[list[float]]:
    return [one.tolist() for one in batch]


@pytest.mark.parametrize("make", [Counting, Streaming])
def test_the_state_is_not_taken_with_each_batch(make: Callable[[], Any]) -> None:
    for every in (None, 1):
        data = make()
        given: dict[str, Any] = {} if every is None else {"snapshot_every_n_steps": every}
        assert len(list(DataLoader(data, 1, num_workers=2, **given))) == 24
        assert (data.asked.value > 8) is (every == 1)


def seeded(worker: int) -> None:
    torch.manual_seed(worker)


@pytest.mark.parametrize("init_fn", [None, seeded])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("make", [Counting, Streaming])
def test_a_loader_goes_on_from_any_position(make: Callable[[], Any], persistent: bool, init_fn: Any) -> None:
    def loader() -> Any:
        generator = torch.Generator().manual_seed(1)
        data = make()
        shuffle = None if isinstance(data, IterableDataset) else True
        return DataLoader(
            data,
            2,
            shuffle,
            num_workers=2,
            persistent_workers=persistent,
            worker_init_fn=init_fn,
            generator=generator,
        )

    for epochs, after in ((0, 0), (0, 3), (0, 12), (1, 5)):
        one = loader()
        for _ in range(epochs):
            list(one)
        iterator = iter(one)
        for _ in range(after):
            next(iterator)
        state = one.state_dict()
        rest = list(map(values, iterator))
        following = list(map(values, one))
        other = loader()
        other.load_state_dict(state)
        assert list(map(values, other)) == rest, (epochs, after)
        assert list(map(values, other)) == following, (epochs, after)


def test_the_size_of_a_state() -> None:
    assert bytes_of({"position": 5, "name": "ab"}) < 200
    assert bytes_of({"table": torch.zeros(LARGE)}) > 16_384
    assert bytes_of([{"a": {"b": (b"x" * 20_000,)}}]) > 16_384
    assert bytes_of(list(range(10_000))) > 16_384
