"""Incompatible arguments, attributes, pinning: headrace refuses and warns as torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from both import MAKERS, assert_parity, native
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset

from headrace import DataLoader
from support import let_go

REFUSED: list[dict[str, Any]] = [
    {"num_workers": -1},
    {"timeout": -1, "num_workers": 1},
    {"prefetch_factor": 2},
    {"num_workers": 1, "prefetch_factor": -1},
    {"persistent_workers": True},
    {"shuffle": True, "sampler": [1]},
    {"batch_sampler": [[1]], "batch_size": 2},
    {"batch_sampler": [[1]], "shuffle": True},
    {"batch_sampler": [[1]], "sampler": [1]},
    {"batch_sampler": [[1]], "drop_last": True},
    {"batch_size": None, "drop_last": True},
    {"batch_size": 0},
    {"batch_size": -3},
    {"drop_last": "yes"},
    {"batch_size": 2.5},
    {"batch_size": "3"},
    {"batch_size": True},
    {"batch_size": np.int64(2)},
]

#: TAKEN: values that torch takes for numbers. LATE: values that it refuses only when an epoch begins.
TAKEN: list[dict[str, Any]] = [
    {"num_workers": True},
    {"num_workers": np.int64(1)},
    {"num_workers": 1, "prefetch_factor": True},
    {"num_workers": 1, "timeout": True},
    {"num_workers": 1, "timeout": np.float32(20)},
    {"sampler": (True, False)},
    {"sampler": [torch.tensor(3)]},
    {"sampler": [torch.tensor([3])]},
    {"sampler": [np.uint64(5), -1]},
    {"sampler": torch.arange(4)},
    {"batch_size": None, "sampler": [True, torch.tensor([2]), np.uint64(3)]},
    {"batch_sampler": [[0, True], torch.tensor([1, 2]), (np.uint64(5), -1)]},
]
LATE: list[dict[str, Any]] = [
    {"timeout": 3},
    {"batch_sampler": [[]]},
    {"sampler": [1.0]},
    {"sampler": ["a"]},
    {"sampler": [None]},
    {"sampler": [torch.tensor(2.0)]},
    {"sampler": [14]},
]


@pytest.mark.parametrize("options", TAKEN, ids=repr)
def test_kinds_of_numbers(options: dict[str, Any]) -> None:
    assert_parity(lambda kind: list(kind(native(), **options)))


@pytest.mark.parametrize("options", LATE, ids=repr)
def test_refusals_of_an_epoch(options: dict[str, Any]) -> None:
    def first(kind: Any) -> type[BaseException]:
        loader = kind(native(), **options)
        with pytest.raises((AssertionError, IndexError, TypeError)) as raised:
            next(iter(loader))
        return let_go(raised.value).__class__

    assert first(DataLoader) is first(TorchDataLoader)


def test_no_batch_ahead_is_refused_where_an_epoch_begins() -> None:
    # torch raises the same, but its half-made iterator raises again when it is collected.
    with pytest.raises(AssertionError, match="prefetch_factor must be 1 or more, not 0"):
        iter(DataLoader(native(), num_workers=1, prefetch_factor=0))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("options", REFUSED, ids=repr)
def test_refusals(make: Callable[..., Any], options: dict[str, Any]) -> None:
    assert_parity(lambda kind: kind(make(), **options), fails=True)


@pytest.mark.parametrize(
    "options",
    [
        {"multiprocessing_context": "spawn"},
        {"multiprocessing_context": "no such", "num_workers": 1},
        {"multiprocessing_context": 3, "num_workers": 1},
    ],
    ids=repr,
)
def test_contexts_that_are_none(options: dict[str, Any]) -> None:
    assert_parity(lambda kind: kind(MAKERS["foreign"](), **options), fails=True)


@pytest.mark.parametrize("context", [None, "fork", torch.multiprocessing.get_context("fork")])
def test_contexts(context: Any) -> None:
    def run(kind: Any) -> Any:
        loader = kind(MAKERS["foreign"](), 7, num_workers=1, multiprocessing_context=context)
        return str(type(loader.multiprocessing_context)), list(loader)

    assert_parity(run)


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(3))


@pytest.mark.parametrize(
    "options", [{"shuffle": True}, {"sampler": [1, 2]}, {"batch_sampler": [[1]]}, {"shuffle": False}], ids=repr
)
def test_streams_have_no_order(options: dict[str, Any]) -> None:
    assert_parity(lambda kind: list(kind(Stream(), **options)), fails=options != {"shuffle": False})


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    "name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"]
)
def test_attributes_that_must_not_be_set(make: Callable[..., Any], name: str) -> None:
    assert_parity(lambda kind: setattr(kind(make(), 2), name, getattr(kind(make(), 2), name)), fails=True)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("workers", [0, 2])
def test_attributes(make: Callable[..., Any], workers: int) -> None:
    def run(kind: Any) -> Any:
        loader = kind(make(), 4, num_workers=workers, timeout=3 * workers, drop_last=True)
        names = ("batch_size", "num_workers", "prefetch_factor", "pin_memory", "pin_memory_device", "timeout")
        more = ("drop_last", "generator", "worker_init_fn", "multiprocessing_context", "persistent_workers", "in_order")
        kinds = [type(getattr(loader, name)).__name__ for name in ("sampler", "batch_sampler", "dataset")]
        return [getattr(loader, name) for name in names + more], kinds, loader.collate_fn.__name__

    assert_parity(run)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is something to pin for")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("workers", [0, 1])
def test_pinning_without_an_accelerator(make: Callable[..., Any], workers: int) -> None:
    told = assert_parity(lambda kind: list(kind(make(), 7, pin_memory=True, num_workers=workers)))["warnings"]
    assert "no accelerator is found" in told[0][1]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is something to pin for")
def test_a_device_to_pin_for() -> None:
    assert_parity(lambda kind: list(kind(MAKERS["foreign"](), 7, pin_memory=True, pin_memory_device="cuda")))


def test_more_workers_than_cores_are_warned_of() -> None:
    told = assert_parity(lambda kind: kind(MAKERS["foreign"](), num_workers=10_000).num_workers)["warnings"]
    assert "excessive worker creation" in told[0][1]
