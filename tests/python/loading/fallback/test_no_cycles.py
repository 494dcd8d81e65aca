"""An epoch of torch's workers leaves nothing to the garbage collector: processes and memory end with the iterator."""

from __future__ import annotations

import gc
import multiprocessing
from typing import Any

import pytest
from torch.utils.data import Dataset

from headrace import DataLoader

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
