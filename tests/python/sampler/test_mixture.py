"""MixtureSampler: shares, passes through the rows, random access, and memory that does not grow with the epoch."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

from headrace._recipe.draws.draws import Occurrences
from headrace.datasets import Mixture, MixturePart
from headrace.sampler import MixtureSampler
from headrace.sampler.mixture import BLOCK


def of(lengths: list[int], weights: list[float | None], seed: int = 0, shuffle: bool = True, **options: Any) -> Any:
    parts = {f"d{n}": (range(length), weight) for n, (length, weight) in enumerate(zip(lengths, weights, strict=True))}
    return MixtureSampler(Mixture(parts, **options), seed, shuffle=shuffle)


def counts(order: list[int], length: int) -> Any:
    return np.bincount(np.array(order, dtype=np.int64), minlength=length)


SIZES: list[Any] = [None, 50, 1234, 20_000, "first_exhausted", "all_exhausted"]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_no_row_is_more_than_one_ahead(size: Any, shuffle: bool) -> None:
    """In each epoch, and over all epochs, also where the weights change."""
    sampler = of([1000, 100, 3], [0.7, 0.2, 0.1], 1, shuffle, epoch_size=size)
    sampler.data_source.set_weights({"d0": 0.1, "d2": 0.3}, 4)
    parts = [slice(0, 1000), slice(1000, 1100), slice(1100, 1103)]
    total = counts([], 1103)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        order = list(sampler)
        assert len(order) == len(sampler)
        found = counts(order, 1103)
        total += found
        assert tuple(int(found[part].sum()) for part in parts) == sampler.data_source.counts(epoch).samples
        assert all(np.ptp(found[part]) <= 1 and np.ptp(total[part]) <= 1 for part in parts)
        known = sampler.occurrences(0, len(order))
        assert np.array_equal(known, Occurrences(1103).take(order))
        assert sampler.most_occurrences() == int(known.max()) + 1


@pytest.mark.parametrize("shuffle", [True, False])
def test_any_part_is_computed_alone(shuffle: bool) -> None:
    sampler = of([5000, 70_000, 10], [1, 8, 1], 3, shuffle, epoch_size=90_001)
    sampler.set_epoch(2)
    order, known = list(sampler), sampler.occurrences(0, 90_001)
    for start in (0, 1, BLOCK - 1, BLOCK, 8 * BLOCK, 12_345, 90_000, 90_001):
        assert list(itertools.islice(sampler.iter_from(start), 3000)) == order[start : start + 3000]
        stop = min(start + 70, 90_001)
        assert np.array_equal(sampler.occurrences(start, stop), known[start:stop])
        inside = np.searchsorted([5000, 75_000], order[:start], side="right")
        assert list(sampler.counts_before(start).values()) == np.bincount(inside, minlength=3).tolist()
    for start in (-1, 90_002):
        with pytest.raises(ValueError, match="start must be from 0 to 90001"):
            sampler.iter_from(start)


def test_epochs_seeds_and_datasets_differ() -> None:
    def order(seed: int, epoch: int, shuffle: bool = True) -> list[int]:
        sampler = of([400, 400], [1, 1], seed, shuffle)
        sampler.set_epoch(epoch)
        return list(sampler)

    orders = [order(seed, epoch) for seed in (0, 1, -1, 2**64 + 5) for epoch in (0, 1)]
    assert len(set(map(tuple, orders))) == 8
    assert orders[0] == order(0, 0) and orders[6] == order(5, 0)
    one, other = ([row % 400 for row in orders[0] if row // 400 == which] for which in (0, 1))
    assert one != other  # rows of two datasets have orders of their own
    plain = order(0, 0, shuffle=False)
    assert plain == order(7, 3, shuffle=False) and plain[:6] == [0, 400, 1, 401, 2, 402]


def test_a_datasets_own_seed() -> None:
    """Its rows follow that, whatever the sampler's is; those of others, and the turns, follow the sampler's."""

    def rows(own: int | None, seed: int) -> list[list[int]]:
        parts = {"a": MixturePart(range(90), 1, seed=own), "b": MixturePart(range(90), 1)}
        order = list(MixtureSampler(Mixture(parts), seed))
        return [[row for row in order if row // 90 == which] for which in (0, 1)]

    assert rows(4, 0)[0] == rows(4, 1)[0] != rows(5, 0)[0]
    assert rows(4, 0)[1] == rows(5, 0)[1] != rows(4, 1)[1]


def test_shares_are_exact_in_each_block() -> None:
    weights = [0.5, 0.3, 0.15, 0.05]
    sampler = of([10**6] * 4, list(weights), 2, epoch_size=40 * BLOCK)
    order = np.fromiter(sampler, np.int64) // 10**6
    for begin in range(0, len(order), BLOCK):
        found = np.bincount(order[begin : begin + BLOCK], minlength=4)
        assert np.abs(found - np.array(weights) * BLOCK).max() <= 5  # blocks begin a few samples earlier


def test_shares_of_batches_pass_chi_square() -> None:
    """Where in a block a dataset has its samples, in 16 parts of each of 300 blocks; and no two follow each other more
    often than by chance. 99.9% quantiles of chi-square."""
    weights, blocks = [0.4, 0.3, 0.2, 0.1], 300
    sampler = of([10**7] * 4, list(weights), 11, epoch_size=blocks * BLOCK)
    order = np.fromiter(sampler, np.int64) // 10**7
    found = np.zeros((4, 16))
    for begin in range(0, len(order), BLOCK):
        parts = order[begin : begin + BLOCK].reshape(16, -1)
        found += [(parts == which).sum(axis=1) for which in range(4)]
    wanted = found.sum(axis=1, keepdims=True) / 16
    assert ((found - wanted) ** 2 / wanted).sum() < 80.1  # 45 degrees of freedom
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (order[:-1], order[1:]), 1)
    wanted = np.outer(weights, weights) * (len(order) - 1)
    assert ((pairs - wanted) ** 2 / wanted).sum() < 37.7  # 15 degrees of freedom
    per_batch = (order[: len(order) // 64 * 64].reshape(-1, 64) == 3).sum(axis=1)
    assert abs(per_batch.mean() - 6.4) < 0.01 and 5.3 < per_batch.var() < 6.1  # about 64 * 0.1 * 0.9


def test_rows_of_a_pass_pass_chi_square() -> None:
    """Where in an epoch's rows each of 8 rows comes, in 4,000 epochs; of whole passes and of parts of one."""
    for size in (8, 5):
        sampler = of([8], [1], 3, epoch_size=size)
        found = np.zeros((8, size))
        for epoch in range(4000):
            sampler.set_epoch(epoch)
            found[list(sampler), range(size)] += 1
        assert found.sum(axis=1).tolist() == [500 * size] * 8  # each row as often as any other
        assert ((found - 500) ** 2 / 500).sum() < {8: 85.4, 5: 56.9}[size]  # 49 and 28 degrees of freedom


def test_a_billion_samples_in_constant_memory() -> None:
    parts = {f"d{n}": (range(10**9 * (n + 1)), n + 1) for n in range(4)}
    sampler = MixtureSampler(Mixture(parts, epoch_size=10**9), 1)
    sampler.set_epoch(10**6)
    assert len(sampler) == 10**9
    tracemalloc.start()
    found = list(itertools.islice(sampler.iter_from(987_654_321), 1000))
    sampler.occurrences(987_654_321, 987_655_321)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(found)) == 1000 and max(found) < 10**10
    assert peak < 16 * 2**20
    assert sum(sampler.counts_before(987_654_321).values()) == 987_654_321


def test_what_is_no_mixture() -> None:
    with pytest.raises(TypeError, match="a MixtureSampler is for a headrace"):
        MixtureSampler([1, 2])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seed must be a whole number"):
        of([3], [1], 0.5)  # type: ignore[arg-type]


def test_copies_by_pickle_have_the_same_order() -> None:
    sampler = of([50, 7], [1, 1], 5)
    order = list(sampler)
    assert list(pickle.loads(pickle.dumps(sampler))) == order
