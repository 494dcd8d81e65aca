"""Draws equal numpy's Philox to the bit, and do not depend on the batch they are made in."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._recipe.draws.draws import BatchUse, Draws, Occurrences, batch_uniform, epoch_words
from headrace._recipe.steps.draw_columns import Column

words = st.integers(0, 2**64 - 1)
samples = st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**32)), min_size=1, max_size=9)


def numpy_uniforms(seed: int, epoch: int, index: int, occurrence: int, k: int) -> np.ndarray:
    philox = np.random.Philox(
        counter=np.array([0, index, occurrence, 0], dtype=np.uint64), key=np.array([seed, epoch], dtype=np.uint64)
    )
    return np.random.Generator(philox).random(k)


@given(seed=words, epoch=words, samples=samples, k=st.integers(0, 27))
def test_uniforms_are_numpys_philox(seed: int, epoch: int, samples: list[tuple[int, int]], k: int) -> None:
    indices, occurrences = np.array(samples, dtype=np.int64).T
    made = Draws([Column()] * k, seed).batch(epoch, indices, occurrences)
    assert made.shape == (len(samples), k) and made.dtype == np.float64 and made.flags.c_contiguous
    for row, (index, occurrence) in zip(made, samples, strict=True):
        assert np.array_equal(row, numpy_uniforms(seed, epoch, index, occurrence, k))


def test_columns_scale_and_exponentiate() -> None:
    columns = [Column(0.08, 1.0), Column(math.log(0.75), math.log(4 / 3), exp=True), Column()]
    made = Draws(columns, 5).batch(2, [11], [0])[0]
    u = numpy_uniforms(5, 2, 11, 0, 3)
    assert made[0] == 0.08 + u[0] * (1.0 - 0.08)
    x = columns[1].low + u[1] * (columns[1].high - columns[1].low)
    assert abs(made[1] - math.exp(x)) <= 2 * math.ulp(made[1])
    assert made[2] == u[2]


@given(st.floats(-700, 700))
def test_exp_is_within_two_units_in_the_last_place(x: float) -> None:
    made = Draws([Column(x, x, exp=True)], 0).batch(0, [0], [0])[0, 0]
    assert abs(Decimal(float(made)) - Decimal(x).exp()) <= 2 * Decimal(math.ulp(made))


def test_a_sample_draws_the_same_in_any_batch() -> None:
    columns = [Column(0.0, 2.0), Column(-1.0, 1.0, exp=True)] * 6
    draws = Draws(columns, 3)
    indices = np.random.Generator(np.random.PCG64(1)).integers(0, 1_300_000, 200)
    occurrences = np.arange(200) % 3
    together = draws.batch(7, indices, occurrences)
    for start in range(0, 200, 64):
        part = slice(start, start + 64)
        assert np.array_equal(draws.batch(7, indices[part], occurrences[part]), together[part])


def test_seed_epoch_index_and_occurrence_all_count() -> None:
    draws = {
        (seed, epoch, index, occurrence): Draws([Column()] * 4, seed).batch(epoch, [index], [occurrence]).tobytes()
        for seed in (0, 1)
        for epoch in (0, 1)
        for index in (0, 1)
        for occurrence in (0, 1)
    }
    assert len(set(draws.values())) == len(draws)


@pytest.mark.parametrize("seed", [-1, 2**64 + 5, -(2**70)])
def test_any_integer_is_a_seed(seed: int) -> None:
    low_bits = Draws([Column()], seed % 2**64).batch(0, [0], [0])
    assert np.array_equal(Draws([Column()], seed).batch(0, [0], [0]), low_bits)


@given(seed=words, epoch=words, number=words)
def test_batches_and_epochs_draw_from_counters_of_their_own(seed: int, epoch: int, number: int) -> None:
    """Both halves of the key count in full, also if one is large and the other is small."""
    key = np.array([seed, epoch], dtype=np.uint64)
    batch, order = (
        np.random.Philox(counter=np.array([0, number, 0, kind], dtype=np.uint64), key=key) for kind in (1, 2)
    )
    assert batch_uniform(seed, epoch, number, BatchUse.OUT_TRANSFORM) == np.random.Generator(batch).random()
    assert np.array_equal(epoch_words(seed, epoch, number, 5), order.random_raw(5))
    assert np.array_equal(epoch_words(seed - 2**64, epoch, number, 3), epoch_words(seed, epoch, number, 5)[:3])


def test_empty_batch_and_no_columns() -> None:
    assert Draws([Column()] * 3, 0).batch(0, [], []).shape == (0, 3)
    assert Draws([], 0).batch(0, [4, 5], [0, 0]).shape == (2, 0)


@given(st.lists(st.lists(st.integers(0, 6), max_size=12), max_size=6))
def test_occurrences_count_earlier_mentions(batches: list[list[int]]) -> None:
    occurrences, seen = Occurrences(7), Counter[int]()
    for batch in batches:
        expected = []
        for index in batch:
            expected.append(seen[index])
            seen[index] += 1
        assert occurrences.take(batch).tolist() == expected


def test_occurrences_refuse_an_index_beyond_the_dataset() -> None:
    with pytest.raises(IndexError):
        Occurrences(3).take([3])
