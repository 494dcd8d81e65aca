"""Samples of every kind are collated as in torch: by default_collate, default_convert and custom functions."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from both import assert_parity
from torch.utils.data import default_collate, default_convert

pytestmark = pytest.mark.processes

Point = namedtuple("Point", "x y")


class Unknown:
    pass


SAMPLES: dict[str, list[Any]] = {
    "ints": [1, 2, 3],
    "floats": [1.0, 2.5, 3.5],
    "bools": [True, False, True],
    "words": ["a", "b", "c"],
    "bytes": [b"a", b"b", b"c"],
    "mixed numbers": [1, 2.5, True],
    "tensors": list(torch.eye(3)),
    "bytes of tensors": list(torch.eye(3, dtype=torch.uint8)),
    "arrays": list(np.eye(3, dtype=np.float16)),
    "scalars of numpy": list(np.arange(3, dtype=np.int16)),
    "arrays of words": [np.array(["a"])] * 3,
    "pairs": [(1, "a"), (2, "b"), (3, "c")],
    "lists": [[1, 2], [3, 4], [5, 6]],
    "lists of other lengths": [[1, 2], [3], [5, 6]],
    "named tuples": [Point(i, (i, str(i))) for i in range(3)],
    "dicts": [{"a": i, "b": {"c": torch.ones(2)}} for i in range(3)],
    "ordered dicts": [OrderedDict([("z", i), ("a", i)]) for i in range(3)],
    "other keys": [{"a": 1}, {"b": 1}, {"a": 2}],
    "none": [None, None, None],
    "none among others": [1, None, 2],
    "objects": [Unknown(), Unknown(), Unknown()],
    "sets": [{1}, {2}, {3}],
    "tensors of other shapes": [torch.zeros(2), torch.zeros(3), torch.zeros(2)],
    "empty tuples": [(), (), ()],
    "empty tensors": [torch.zeros(0, 2)] * 3,
    "0-d tensors": list(torch.arange(3.0)),
    "complex": [torch.complex(torch.ones(1), torch.zeros(1))] * 3,
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("workers", [0, 1])
def test_batches(name: str, workers: int) -> None:
    assert_parity(lambda kind: list(kind(SAMPLES[name], 2, num_workers=workers)), fails=None)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "objects"])
@pytest.mark.parametrize("collate", [None, default_convert], ids=["by default", "asked for"])
def test_single_samples(name: str, collate: Callable[..., Any] | None) -> None:
    assert_parity(lambda kind: list(kind(SAMPLES[name], None, collate_fn=collate)))


class Batch:
    """A custom batch, whose pin_memory records the call."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples, self.pinned = samples, False

    def pin_memory(self) -> Batch:
        self.pinned = True
        return self


def last_first(samples: list[Any]) -> Any:
    return default_collate(samples[::-1])


@pytest.mark.parametrize("collate", [list, tuple, len, str, Batch, last_first], ids=lambda one: one.__name__)
@pytest.mark.parametrize("workers", [0, 1])
def test_functions_of_ones_own(collate: Callable[..., Any], workers: int) -> None:
    assert_parity(lambda kind: list(kind([1, 2, 3], 2, num_workers=workers, collate_fn=collate)))


def test_one_that_fails() -> None:
    def refuse(samples: list[Any]) -> Any:
        raise ArithmeticError(f"not {samples}")

    for workers in (0, 1):
        assert_parity(
            lambda kind, workers=workers: list(kind([1, 2], 2, num_workers=workers, collate_fn=refuse)),  # type: ignore[misc]
            fails=True,
        )


def test_whole_batches_of_a_dataset() -> None:
    class Batched(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> int:
            raise AssertionError

        def __getitems__(self, indices: list[int]) -> list[int]:
            return [10 * i for i in indices]

    assert_parity(lambda kind: list(kind(Batched(), 4)))


def test_batches_as_indices() -> None:
    class Bulk(torch.utils.data.Dataset[Any]):
        def __getitem__(self, indices: list[int]) -> torch.Tensor:
            return torch.tensor(indices) * 2

    sampler = [[1, 2], [3, 4]]
    assert_parity(lambda kind: list(kind(Bulk(), batch_size=None, sampler=sampler)))
