"""Keys of indices of any kind, and the counts of how often an epoch has named them."""

from __future__ import annotations

import enum
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace._recipe.draws.index_keys import KeyCounts, index_key
from support import WATCHDOG_S


class Name(str, enum.Enum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("indices", "key"),
    [
        ([7, np.int64(7), np.uint8(7), torch.tensor(7), np.array(7)], 7),
        ([-1, np.int32(-1)], -1),
        ([True], 1),
        (["7"], "'7'"),
        (
            [(3, 224), [3, 224], torch.tensor([3, 224]), np.array([3, 224]), (np.int64(3), torch.tensor(224))],
            "[3, 224]",
        ),
        ([slice(1, 5), slice(1, 5, None)], "[1, 5, None]"),
        ([None], "None"),
        ([b"a"], "b'a'"),
        ([np.str_("a"), Name.A, "a"], "'a'"),
        ([1.5, np.float64(1.5), np.float32(1.5)], "1.5"),
        ([(True, Number.ONE), (1, 1)], "[1, 1]"),
        ([{"a": 1, 2: (None, 1.5)}], "[['a', 1], [2, [None, 1.5]]]"),
    ],
)
def test_equal_indices_have_equal_keys(indices: list[Any], key: int | str) -> None:
    assert [index_key(index) for index in indices] == [key] * len(indices)


def test_a_key_is_the_same_in_every_process() -> None:
    code = "from headrace._recipe.draws.index_keys import index_key; print(index_key(('a', {'b': 1.25}, None)))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WATCHDOG_S)
    assert other.stdout.strip() == index_key(("a", {"b": 1.25}, None))


@pytest.mark.parametrize(
    "index", [object(), (1, object()), {1: int}, {3, 4}], ids=["object", "in a tuple", "class", "set"]
)
def test_objects_have_no_key(index: Any) -> None:
    with pytest.raises(TypeError, match=r"the sampler yielded an object of builtins\.\w+; use numbers, "):
        index_key(index)


keys = st.lists(st.one_of(st.integers(-3, 12), st.sampled_from(["'a'", "[1, 2]"])), max_size=40)


@given(first=keys, more=keys, later=keys, length=st.integers(0, 8))
def test_counts_go_on_where_they_were_packed(first: list[Any], more: list[Any], later: list[Any], length: int) -> None:
    counts = KeyCounts(length)
    named: list[Any] = []
    for key in first + more:
        assert counts.take(key) == named.count(key)
        named.append(key)
    packed = json.loads(json.dumps(counts.pack_counts(more)))
    again, named = KeyCounts(length), list(first)
    again.restore(packed)
    for key in later:
        assert again.take(key) == named.count(key)
        named.append(key)


def test_counts_of_another_dataset_are_refused() -> None:
    counts = KeyCounts(3)
    with pytest.raises(ValueError, match="another number of samples"):
        counts.restore(KeyCounts(4).pack_counts([]))
