"""A dataset that changes between or during epochs: every loader delivers what torch's delivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from changing import CHANGES, short
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from support import let_go, same

pytestmark = pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
Run = Callable[[Any, Callable[[], None], dict[str, Any]], Iterator[Any]]


def attempt(iterator: Any) -> Any:
    """The next batch, or the name of the exception that is raised instead."""
    try:
        return next(iterator)
    except Exception as error:
        return type(let_go(error)).__name__


def epoch(loader: Any) -> list[Any]:
    """What an epoch yields, to its end: batches, and names of exceptions."""
    got: list[Any] = []
    try:
        iterator = iter(loader)
    except Exception as error:
        return [type(let_go(error)).__name__]
    while len(got) < 9 and got[-1:] != ["StopIteration"]:
        got.append(attempt(iterator))
    return got


def before(loader: Any, change: Callable[[], None]) -> list[Any]:
    change()
    return [epoch(loader), len(loader), epoch(loader)]


def between(loader: Any, change: Callable[[], None]) -> list[Any]:
    first = epoch(loader)
    change()
    return [first, len(loader), epoch(loader), epoch(loader)]


def during(loader: Any, change: Callable[[], None]) -> list[Any]:
    iterator = iter(loader)
    got = [attempt(iterator)]
    change()
    got += [attempt(iterator) for _ in range(4)]
    return [got, epoch(loader)]


WORKER = {"num_workers": 1}
LASTING = {**WORKER, "persistent_workers": True}
IN_PROCESSES = ((WORKER, between), (WORKER, during), *((LASTING, one) for one in (before, between, during)))


@pytest.mark.parametrize(
    ("name", "workers", "when"),
    [
        *((name, {}, when) for name in CHANGES for when in (before, between, during)),
        *(
            pytest.param(name, *IN_PROCESSES[(number + more) % len(IN_PROCESSES)], marks=pytest.mark.processes)
            for number, name in enumerate(CHANGES)
            for more in (0, 2)  # processes take long to start
        ),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_changes_are_torchs(name: str, workers: dict[str, Any], when: Callable[..., Any], tmp_path: Path) -> None:
    case = CHANGES[name]
    if workers and case.seen_live and (when is during or (when is between and len(workers) > 1)):
        pytest.skip("values in an array, or in a mutable label, are read when a batch is made (docs/datasets.md)")
    results = []
    for number, kind in enumerate((TorchDataLoader, DataLoader)):
        root = tmp_path / str(number)
        root.mkdir()
        data = case.make(root)
        generator = torch.Generator().manual_seed(3)
        loader = kind(data, 3, shuffle=True, generator=generator, **workers)
        if kind is DataLoader:
            assert loader.native, loader.explain()
        results.append(when(loader, lambda data=data: case.change(data)))
    theirs, ours = results
    assert same(theirs, ours), f"torch: {short(theirs)}\nheadrace: {short(ours)}"
