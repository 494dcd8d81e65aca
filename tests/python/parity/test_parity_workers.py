"""Worker processes of foreign datasets: their seeds and random numbers; streams and their lengths."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from both import MAKERS, assert_parity
from torch.utils.data import ChainDataset, Dataset, IterableDataset, get_worker_info

pytestmark = pytest.mark.processes


class Seeds(Dataset[Any]):
    """Samples that hold the worker's info and its random numbers."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        known = (-1, -1, -1) if info is None else (info.id, info.num_workers, info.seed)
        return [index, *known, torch.initial_seed() if info else 0, random.random(), np.random.rand(), torch.rand(2)]  # noqa: NPY002


def lists(samples: list[Any]) -> list[Any]:
    return samples


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("generator", [False, True])
def test_seeds(workers: int, persistent: bool, generator: bool) -> None:
    if persistent and not workers:
        pytest.skip("torch refuses persistent_workers without workers")

    def run(kind: Any) -> Any:
        own = torch.Generator().manual_seed(2) if generator else None
        options = {"num_workers": workers, "persistent_workers": persistent, "generator": own, "collate_fn": lists}
        loader = kind(Seeds(), 2, True, **options)
        return [list(loader), list(loader), None if own is None else own.get_state()]

    assert_parity(run)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("persistent", [False, True])
def test_native_loaders_leave_the_generators_where_torch_does(make: Callable[..., Any], persistent: bool) -> None:
    def run(kind: Any) -> Any:
        own = torch.Generator().manual_seed(2)
        loader = kind(make(), 3, True, num_workers=1, persistent_workers=persistent, generator=own)
        states = []
        for _ in range(3):
            list(loader)
            states.append(own.get_state())
        return states

    assert_parity(run)


def first_word(worker: int) -> None:
    torch.manual_seed(100 + worker)
    os.environ["HEADRACE_TEST_WORKER"] = str(worker)


def test_worker_init_fn() -> None:
    def run(kind: Any) -> Any:
        loader = kind(Seeds(), 2, num_workers=2, worker_init_fn=first_word, collate_fn=lists)
        return [[sample[-1] for sample in batch] for batch in loader]

    assert_parity(run)
    for make in MAKERS.values():
        assert_parity(lambda kind, make=make: list(kind(make(), 5, num_workers=2, worker_init_fn=first_word)))  # type: ignore[misc]


def test_worker_init_fn_that_fails() -> None:
    def refuse(worker: int) -> None:
        raise ConnectionError(f"worker {worker}")

    assert_parity(lambda kind: list(kind(Seeds(), 2, num_workers=1, worker_init_fn=refuse)), fails=True)


class Stream(IterableDataset[int]):
    """`count` numbers, split among the workers if `dealt`; reports `says` as its length."""

    def __init__(self, count: int, says: int | None = None, dealt: bool = False) -> None:
        self.count, self.says, self.dealt = count, says, dealt

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None and self.dealt else (0, 1)
        return iter(range(first, self.count, step))

    def __repr__(self) -> str:  # torch's warning contains it
        return "a stream"

    def __len__(self) -> int:
        if self.says is None:
            raise TypeError("a stream has no length")
        return self.says


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dealt", [False, True])
@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_streams(workers: int, dealt: bool, options: dict[str, Any]) -> None:
    assert_parity(lambda kind: list(kind(Stream(7, dealt=dealt), num_workers=workers, **options)))


@pytest.mark.parametrize("says", [None, 7, 5, 20])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}])
def test_lengths_of_streams(says: int | None, workers: int, options: dict[str, Any]) -> None:
    """Once len() was called, torch warns of a stream that is longer than its reported length."""

    def run(kind: Any) -> Any:
        loader = kind(Stream(7, says), num_workers=workers, **options)
        length = None if says is None else len(loader)
        return length, list(loader)

    told = assert_parity(run)["warnings"]
    if workers == 2 and says == 5:  # both workers yield all of it
        assert "was reported to be 5" in told[0][1]
    elif says in (None, 20):
        assert not told


def test_a_stream_without_a_length() -> None:
    assert_parity(lambda kind: len(kind(Stream(7))), fails=True)


def test_persistent_streams() -> None:
    def run(kind: Any) -> Any:
        loader = kind(Stream(5, dealt=True), 2, num_workers=2, persistent_workers=True)
        return [list(loader) for _ in range(3)]

    assert_parity(run)


def test_streams_behind_one_another() -> None:
    for workers in (0, 2):
        assert_parity(
            lambda kind, workers=workers: list(kind(ChainDataset([Stream(3), Stream(4)]), 2, num_workers=workers))  # type: ignore[misc]
        )


def test_datasets_that_are_no_datasets() -> None:
    for data in ([5, 6, 7], (1, 2), range(4), {0: "a", 1: "b"}, "abc", np.arange(4), torch.arange(4)):
        assert_parity(lambda kind, data=data: list(kind(data, 2)))  # type: ignore[misc]
