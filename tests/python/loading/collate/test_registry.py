"""Entries of torch's default_collate_fn_map that a program adds or changes take effect with the next epoch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data._utils.collate import default_collate_fn_map

sys.path.append(str(Path(__file__).parents[2] / "datasets/sources"))
import changing

from headrace import DataLoader
from support import same

pytestmark = pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")


def marked(batch: Any, *, collate_fn_map: Any = None) -> Any:
    return ("marked", len(batch))


class Label:
    pass


class Sub(torch.Tensor):
    pass


SOURCES = ("folder", "cifar", "mnist", "arrays", "blobs", "columns", "samples", "stack", "nested")


@pytest.fixture
def entries() -> Iterator[dict[Any, Any]]:
    before = dict(default_collate_fn_map)
    yield default_collate_fn_map
    default_collate_fn_map.clear()
    default_collate_fn_map.update(before)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.processes)])
@pytest.mark.parametrize(
    "key", [int, float, str, torch.Tensor, np.ndarray, tuple, list, dict, object, Number, np.int64], ids=str
)
def test_entries_of_built_in_types(entries: dict[Any, Any], key: type, workers: int, tmp_path: Path) -> None:
    for source in SOURCES if workers == 0 else ("folder", "columns", "nested"):
        (tmp_path / source).mkdir()
        data = getattr(changing, source)(tmp_path / source)
        loaders: list[Any] = [kind(data, 3, num_workers=workers) for kind in (TorchDataLoader, DataLoader)]
        assert loaders[1].native
        first = [list(loader) for loader in loaders]
        entries[key] = marked
        second = [list(loader) for loader in loaders]
        new = [list(kind(data, 3, num_workers=workers)) for kind in (TorchDataLoader, DataLoader)]
        del entries[key]
        entries.clear()
        entries.update(USUAL)
        for theirs, ours in (first, second, new):
            assert same(theirs, ours), (source, changing.short(theirs), changing.short(ours))


USUAL = dict(default_collate_fn_map)


def test_an_entry_changes_during_an_epoch(entries: dict[Any, Any], tmp_path: Path) -> None:
    data = changing.folder(tmp_path)
    iterators = [iter(kind(data, 3)) for kind in (TorchDataLoader, DataLoader)]
    first = [next(one) for one in iterators]
    entries[int] = marked
    second = [list(one) for one in iterators]
    assert same(*first) and same(*second) and second[1][0][1] == ("marked", 3)


@pytest.mark.parametrize("key", [Label, Sub, (Label, bytearray), complex])
def test_entries_of_types_that_do_not_occur_keep_the_native_route(
    entries: dict[Any, Any], key: type | tuple[Any, ...], tmp_path: Path
) -> None:
    entries[key] = marked
    loader = DataLoader(changing.folder(tmp_path), 3)
    assert loader.native
    assert same(list(TorchDataLoader(loader.dataset, 3)), list(loader))


def test_an_entry_of_a_label_is_called(entries: dict[Any, Any], tmp_path: Path) -> None:
    entries[Label] = marked
    data = changing.folder(tmp_path, [Label() for _ in range(8)])
    loader = DataLoader(data, 4)
    assert loader.native and next(iter(loader))[1] == ("marked", 4)
