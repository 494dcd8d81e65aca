"""A list in one buffer: the items of Python's list, and memory that worker processes share."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from torch.utils.data import Dataset

from headrace import DataLoader, SharedList

TEXTS = some.text(some.characters(codec=None))
LISTS = some.one_of(
    some.lists(TEXTS), some.lists(some.binary()), some.lists(some.one_of(TEXTS, some.integers(), some.none()))
)


@given(LISTS, some.slices(8), some.integers(-9, 9))
def test_it_has_what_a_list_has(items: list[Any], part: slice, index: int) -> None:
    made: SharedList[Any] = SharedList(items)
    assert len(made) == len(items) and list(made) == items and made == items and items == made
    assert list(made[part]) == items[part] and made[part] == SharedList(items[part])
    assert [*map(type, made)] == [*map(type, items)]
    if -len(items) <= index < len(items):
        assert made[index] == items[index] == made[np.int64(index)] and made.index(items[index]) == items.index(
            items[index]
        )
    else:
        with pytest.raises(IndexError, match="list index out of range"):
            made[index]
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), made[:]):
        assert other == made and list(other) == items
    assert made != [*items, 0] and (made == tuple(items)) is False and list(reversed(made)) == items[::-1]


def test_many_items_and_their_bytes() -> None:
    items = [f"a/b/{number:08}é" for number in range(200_000)]
    made = SharedList(items)
    assert made == items and made.nbytes == sum(len(one.encode()) for one in items) + 8 * 200_001
    part = made[70_000:70_003]
    assert part == items[70_000:70_003] and np.shares_memory(part._content, made._content)
    assert len(pickle.dumps(part)) < 1000
    assert repr(part) == f"SharedList({items[70_000:70_003]}), 3 items" and "..." in repr(made)
    with pytest.raises(TypeError):
        made["a"]  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)
    with pytest.raises(Exception, match="lambda"):
        SharedList([lambda: 0])


def private_kb() -> int:
    """Memory of this process that it shares with no other one."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


class Reading(Dataset[int]):
    """Its samples are how many kilobytes of memory the worker has come to own while it read all items."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> int:
        before, read = private_kb(), 0
        for one in self.items:
            read += len(one)
        assert read == 40 * len(self.items)
        return private_kb() - before


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the system does not tell private memory")
@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
def test_workers_own_no_copy() -> None:
    assert "fork" in multiprocessing.get_all_start_methods()
    items = [f"{number:040}" for number in range(200_000)]  # 18 MB

    def grown(items: Any) -> int:
        loader = DataLoader(Reading(items), batch_size=None, num_workers=1, multiprocessing_context="fork")
        return int(next(iter(loader)))

    assert grown(items) > 14_000
    assert grown(SharedList(items)) < 2_000
