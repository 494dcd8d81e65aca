"""PermutationSampler is a bijection at any length, and its memory does not grow with the length."""

from __future__ import annotations

import itertools
import math
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from headrace.sampler import PermutationSampler
from headrace.sampler.permutation import TABLE, _Feistel
from support import blobs

BILLIONS = 10**10


# ---- a bijection -----------------------------------------------------------------------------------------------------


def test_every_sample_once_for_all_small_lengths() -> None:
    for n in range(1, 300):
        assert sorted(PermutationSampler(n, seed=n)) == list(range(n))
        values = _Feistel(n, 7, n).at(np.arange(n))
        assert np.array_equal(np.sort(values), np.arange(n))


@pytest.mark.parametrize(
    "n", [2**k + d for k in (10, 13, 16, 17, 20) for d in (-1, 0, 1)] + [999_983, 1_000_000, 1_048_574]
)
def test_every_sample_once(n: int) -> None:
    sampler = PermutationSampler(n, seed=1)
    values = sampler.at(np.arange(n))
    assert values.dtype == np.int64 and np.array_equal(np.bincount(values, minlength=n), np.ones(n))
    network = _Feistel(n, 1, 0).at(np.arange(n))
    assert np.array_equal(np.bincount(network, minlength=n), np.ones(n))


# ---- a second implementation -----------------------------------------------------------------------------------------


def plainly(position: int, n: int, seed: int, epoch: int) -> int:
    """The sample at a position, computed with Python's integers from the description alone."""
    key = np.array([seed % 2**64, epoch], dtype=np.uint64)
    keys = np.random.Philox(counter=[0, 0, 0, 2], key=key).random_raw(8).tolist()
    bits = math.ceil(math.log2(n)) if n < 2**40 else (n - 1).bit_length()
    low_bits = math.ceil(bits / 2)
    widths = [bits - low_bits, low_bits]

    def mixed(half: int, key: int, width: int) -> int:
        word = (half ^ key) * 0xFF51AFD7ED558CCD % 2**64
        word = (word ^ word >> 32) * 0xC4CEB9FE1A85EC53 % 2**64
        return word // 2 ** (64 - width)

    while True:
        halves = list(divmod(position, 2**low_bits))
        for number, key in enumerate(keys):
            changed = number % 2
            halves[changed] ^= mixed(halves[1 - changed], key, widths[changed])
        position = halves[0] * 2**low_bits + halves[1]
        if position < n:
            return position


@pytest.mark.parametrize("n", [65_537, 100_003, 2**17, 10**6, BILLIONS, 2**32 - 1, 2**32 + 1, 2**61 + 1, 2**62])
@pytest.mark.parametrize(("seed", "epoch"), [(0, 0), (2**64 + 5, 3), (-1, 2**40)])
def test_vectors_compute_what_integers_do(n: int, seed: int, epoch: int) -> None:
    sampler = PermutationSampler(n, seed)
    sampler.set_epoch(epoch)
    positions = np.array([0, 1, 2, n // 2, n // 3, n - 2, n - 1])
    assert sampler.at(positions).tolist() == [plainly(int(one), n, seed, epoch) for one in positions]


# ---- the protocol ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1000, TABLE, TABLE + 1, 200_000])
def test_iteration_is_at_all_positions_from_anywhere(n: int) -> None:
    sampler = PermutationSampler(range(n), seed=4)
    sampler.set_epoch(2)
    whole = list(sampler)
    assert len(sampler) == n and whole == sampler.at(np.arange(n)).tolist() and type(whole[0]) is int
    for start in (0, 1, n // 2, n - 1, n):
        assert list(sampler.iter_from(start)) == whole[start:]
    grid = np.arange(12).reshape(3, 4)
    assert np.array_equal(sampler.at(grid), np.array(whole[:12]).reshape(3, 4))
    assert sampler.at([]).shape == (0,)


def test_iter_from_starts_anywhere_at_once() -> None:
    sampler = PermutationSampler(BILLIONS)
    last = list(sampler.iter_from(BILLIONS - 3))
    assert last == sampler.at(np.arange(BILLIONS - 3, BILLIONS)).tolist()
    assert len(sampler) == BILLIONS and next(sampler.iter_from(BILLIONS), None) is None


@pytest.mark.parametrize("n", [100, 70_000])
def test_the_order_follows_from_seed_and_epoch_alone(n: int) -> None:
    sampler = PermutationSampler(n, seed=3)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = list(sampler)
    assert list(sampler) == first, "as with torch's DistributedSampler, only set_epoch changes the order"
    begun = iter(sampler)
    head = [next(begun)]
    sampler.set_epoch(1)
    assert head + list(begun) == first, "set_epoch must not change an epoch under way"
    second = list(sampler)
    assert second != first and sampler.epoch == 1
    sampler.epoch = 0
    assert list(sampler) == first
    assert list(PermutationSampler([None] * n, seed=3 + 2**64)) == first
    assert list(PermutationSampler(n, seed=4)) != first
    again = pickle.loads(pickle.dumps(sampler))
    again.set_epoch(1)
    assert list(again) == second and len(pickle.dumps(sampler)) < 500
    assert torch.equal(torch.get_rng_state(), state)


def test_the_order_is_the_same_in_every_version() -> None:
    """The order of a started training must not change."""
    assert list(PermutationSampler(8, seed=1)) == [5, 4, 6, 0, 7, 2, 3, 1]
    first = list(itertools.islice(PermutationSampler(BILLIONS, seed=1), 4))
    assert first == [4_979_310_912, 6_798_042_693, 2_467_721_820, 227_762_114]


@pytest.mark.slow
def test_memory_does_not_grow() -> None:
    sampler = PermutationSampler(range(BILLIONS))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        steps = sum(1 for _ in itertools.islice(sampler, 2_000_000))
        sampler.at(np.arange(1000) * 10**6)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert steps == 2_000_000 and peak < 4 * 2**20


@pytest.mark.parametrize("loader", [TorchDataLoader, headrace.DataLoader])
def test_loaders_over_billions(loader: type) -> None:
    data = range(BILLIONS)
    sampler = PermutationSampler(data, seed=9)
    batches = loader(data, batch_size=5, sampler=sampler)
    assert len(batches) == BILLIONS // 5
    expected = sampler.at(np.arange(10)).reshape(2, 5)
    assert np.array_equal(torch.stack(list(itertools.islice(batches, 2))).numpy(), expected)
    assert next(iter(BatchSampler(sampler, 5, False))) == expected[0].tolist()


def test_the_native_loader_takes_it_and_tells_it_the_epoch() -> None:
    data = blobs(12)
    sampler = PermutationSampler(data, seed=9)
    loader = headrace.DataLoader(data, 5, sampler=sampler, num_workers=1, seed=0)
    for epoch in (0, 4):
        loader.set_epoch(epoch)
        order = PermutationSampler(12, seed=9)
        order.set_epoch(epoch)
        assert loader.native and torch.cat([labels for _, labels in loader]).tolist() == list(order)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0,), ValueError, "1 to 2..62 samples, not 0"),
        (([],), ValueError, "not 0"),
        ((-3,), ValueError, "not -3"),
        ((2**62 + 1,), ValueError, "not 4611686018427387905"),
        ((1.5,), TypeError, "have a length or be an integer, not float"),
        ((True,), TypeError, "whole number, not True"),
        ((iter([1]),), TypeError, "have a length"),
        ((5, 1.0), TypeError, "seed must be a whole number, not 1.0"),
        ((5, "a"), TypeError, "seed"),
        ((5, None), TypeError, "seed"),
    ],
)
def test_what_is_no_length_or_seed(arguments: tuple[Any, ...], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        PermutationSampler(*arguments)


def test_what_is_no_position_or_epoch() -> None:
    sampler = PermutationSampler(torch.arange(10))
    for bad in ([10], [3, -1], [[2**63]], np.array([12], np.uint64)):
        with pytest.raises(ValueError, match="is not in an epoch of 10 samples"):
            sampler.at(bad)
    for wrong in ([0.5], [True], ["a"]):
        with pytest.raises(TypeError, match="array of integers"):
            sampler.at(wrong)
    for start in (-1, 11):
        with pytest.raises(ValueError, match="from 0 to 10"):
            sampler.iter_from(start)
    with pytest.raises(TypeError, match="start"):
        sampler.iter_from(1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="epoch must be 0 or more"):
        sampler.set_epoch(-1)
    with pytest.raises(TypeError, match="epoch"):
        sampler.set_epoch("1")  # type: ignore[arg-type]
