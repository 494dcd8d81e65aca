"""An epoch of torch's workers leaves nothing to the garbage collector: processes and memory end with the iterator."""

from __future__ import annotations

import gc
import multiprocessing
import weakref
from typing import Any

import pytest
from torch.utils.data import Dataset

from headrace import DataLoader
from headrace._base.native import core

pytestmark = [pytest.mark.processes, pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")]


class Plain(Dataset[Any]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> int:
        return index


@pytest.mark.parametrize("batches", [0, 2, 99], ids=["not begun", "left", "whole"])
@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"num_workers": 1, "seed": 3}], ids=str)
def test_an_epoch_leaves_nothing_behind(options: dict[str, Any], batches: int) -> None:
    def epoch() -> None:
        iterator = iter(loader)
        for _ in range(batches):
            next(iterator, None)

    loader = DataLoader(Plain(), 2, **options)
    assert not loader.native
    epoch()
    gc.collect()
    gc.disable()
    try:
        epoch()
        assert gc.collect() == 0
        assert not multiprocessing.active_children()
    finally:
        gc.enable()


class Holder:
    """Refers to a composition of its own methods."""

    def __init__(self) -> None:
        self.composed = core.Composed(self.add, self.add)

    def add(self, value: int) -> int:
        return value + 1


def test_compositions_are_collected_with_their_cycles() -> None:
    holder = Holder()
    assert holder.composed(1) == 3
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None
