"""Announcements: in order, within their bytes, and without a change of the order or its errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from headrace._storage.remote.announcements import Announced


@dataclass
class Batch:
    indices: npt.NDArray[np.int64]


@dataclass
class Source:
    ahead_bytes: int
    announced: list[int] = field(default_factory=list)

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        if indices.max() > 100:
            raise IndexError
        self.announced += indices.tolist()
        return 10 * len(indices)


def order(*numbers: int) -> Iterator[Batch]:
    return iter([Batch(np.array([number])) for number in numbers])


def test_announces_so_many_bytes_ahead() -> None:
    source = Source(30)
    batches = Announced(order(*range(8)), source)
    ahead = []
    for number, batch in enumerate(batches):
        assert batch.indices.tolist() == [number]
        ahead.append(len(source.announced) - number)
    assert ahead == [3, 3, 3, 3, 3, 3, 2, 1]
    assert source.announced == list(range(8))
    assert len(list(Announced(order(*range(200)), Source(10**9)))) == 200


def test_one_batch_is_enough_where_it_is_larger() -> None:
    source = Source(1)
    assert len(list(Announced(order(1, 2, 3), source))) == 3 and source.announced == [1, 2, 3]


class Failing:
    def __init__(self) -> None:
        self.asked = 0

    def __iter__(self) -> Failing:
        return self

    def __next__(self) -> Batch:
        self.asked += 1
        if self.asked == 3:
            raise RuntimeError("the sampler failed")
        if self.asked > 5:
            raise StopIteration
        return Batch(np.array([self.asked]))


def test_errors_of_the_sampler_come_after_the_batches_before_them() -> None:
    batches = Announced(Failing(), Source(1000))
    assert [next(batches).indices[0] for _ in range(2)] == [1, 2]
    with pytest.raises(RuntimeError, match="the sampler failed"):
        next(batches)
    assert [one.indices[0] for one in batches] == [4, 5]  # it is asked again, as without announcements


def test_an_index_that_does_not_exist_is_left_to_its_batch() -> None:
    assert [one.indices[0] for one in Announced(order(1, 500, 2), Source(1000))] == [1, 500, 2]
