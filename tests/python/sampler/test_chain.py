"""Samplers that draw from others: headrace follows their names, which may lead back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, SequentialSampler

from headrace import Columns, DataLoader
from headrace._recipe.draws.seeded_sampler import sampler_chain

NUMBERS: Any = list(range(6))  # no Dataset by its type


class Itself:
    """A sampler that names itself as the one it draws from, as wrappers of samplers do."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(6))

    def __len__(self) -> int:
        return 6

    @property
    def sampler(self) -> Any:
        return self


class Pair(Itself):
    """One of two that name each other."""

    other: Pair | None = None

    @property
    def sampler(self) -> Any:
        return self.other


def pair() -> Pair:
    one, other = Pair(), Pair()
    one.other, other.other = other, one
    return one


def test_each_sampler_of_a_chain_comes_once() -> None:
    inner = SequentialSampler(range(6))
    outer = BatchSampler(inner, 2, drop_last=False)
    assert list(sampler_chain(outer)) == [outer, inner]
    assert len(list(sampler_chain(Itself()))) == 1
    assert len(list(sampler_chain(pair()))) == 2


@pytest.mark.parametrize("make", [Itself, pair])
@pytest.mark.parametrize("arguments", [{}, {"seed": 0}, {"num_workers": 1}])
def test_a_loader_of_a_sampler_whose_chain_leads_back(make: Callable[..., Any], arguments: dict[str, Any]) -> None:
    of_samples = DataLoader(NUMBERS, 2, sampler=make(), **arguments)
    of_batches = DataLoader(NUMBERS, batch_sampler=BatchSampler(make(), 2, False), **arguments)
    for loader in (of_samples, of_batches):
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("make", [Itself, pair])
def test_a_native_loader_of_a_sampler_whose_chain_leads_back(make: Callable[..., Any]) -> None:
    loader = DataLoader(Columns({"x": torch.arange(6)}), 2, sampler=make())
    assert loader.native
    assert [batch["x"].tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]
