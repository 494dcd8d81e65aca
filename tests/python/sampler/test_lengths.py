"""Batches of similar lengths hold every sample once, within the limits, with less padding than random batches."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from headrace.sampler import LengthBucketBatchSampler, PaddingCollate

# Lengths like those of sentences in characters: log-normal, cut at 512.
SENTENCES = np.clip(np.random.Generator(np.random.PCG64(0)).lognormal(4, 0.7, 50_000).astype(np.int64), 1, 512)


def padding(lengths: np.ndarray, batches: list[list[int]]) -> float:
    """The share of padding in the padded batches."""
    padded = sum(int(lengths[batch].max()) * len(batch) for batch in batches)
    return 1 - sum(int(lengths[batch].sum()) for batch in batches) / padded


def random_batches(count: int, size: int) -> list[list[int]]:
    order = np.random.Generator(np.random.PCG64(1)).permutation(count)
    return [order[begin : begin + size].tolist() for begin in range(0, count, size)]


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=120),
    batch_size=st.none() | st.integers(1, 20),
    max_tokens=st.none() | st.integers(40, 200),
    pool=st.none() | st.integers(1, 5),
    shuffle=st.booleans(),
    seed=st.integers(-(2**70), 2**70),
)
def test_every_sample_once_within_the_limits(
    lengths: list[int], batch_size: int | None, max_tokens: int | None, pool: int | None, shuffle: bool, seed: int
) -> None:
    if batch_size is None and max_tokens is None:
        batch_size = 3
    options: dict[str, Any] = {"shuffle": shuffle, "seed": seed, "pool": pool}
    sampler = LengthBucketBatchSampler(lengths, batch_size, max_tokens, **options)
    dropping = LengthBucketBatchSampler(lengths, batch_size, max_tokens, drop_last=True, **options)
    for epoch in (0, 3):
        sampler.set_epoch(epoch)
        dropping.set_epoch(epoch)
        batches, kept = list(sampler), list(dropping)
        assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
        assert len(sampler) == len(batches) and len(dropping) == len(kept)
        for batch in batches:
            own = [lengths[index] for index in batch]
            assert own == sorted(own, reverse=True), "the longest sample comes first"
            assert batch_size is None or len(batch) <= batch_size
            assert max_tokens is None or len(batch) * max(own) <= max_tokens
        dropped = [batch for batch in map(tuple, batches) if batch not in set(map(tuple, kept))]
        assert len(dropped) <= 1 and len(kept) == len(batches) - len(dropped), "only the incomplete batch is dropped"
        for batch in map(list, dropped):  # it was incomplete: one more sample would have fitted
            assert batch_size is None or len(batch) < batch_size
            longest = max(1, *(lengths[index] for index in batch)) if len(batch) > 1 else max(1, lengths[batch[0]])
            assert max_tokens is None or (len(batch) + 1) * longest <= max_tokens
        if max_tokens is None:
            assert batch_size is not None and len(dropped) == (len(lengths) % batch_size > 0)


@pytest.mark.parametrize("drop_last", [False, True])
def test_less_padding_than_in_random_batches_and_than_the_bound(drop_last: bool) -> None:
    """In a sorted pool the length ranges of the batches add up to at most the range of the pool. So its padding is at
    most (batch_size - 1) * (longest - shortest)."""
    size, pool = 32, 100
    sampler = LengthBucketBatchSampler(SENTENCES, size, pool=pool, drop_last=drop_last)
    pools = -(-len(SENTENCES) // (size * pool)) + 1  # and one for what they leave over
    most = pools * (size - 1) * int(SENTENCES.max() - SENTENCES.min())
    share = padding(SENTENCES, list(sampler))
    assert share < most / (most + SENTENCES.sum()) < 0.1
    assert share < 0.05 and padding(SENTENCES, random_batches(len(SENTENCES), size)) > 0.65


def test_a_budget_is_filled() -> None:
    """A full batch has no room for one more sample, so few batches hold all tokens."""
    sampler = LengthBucketBatchSampler(SENTENCES, max_tokens=8192)
    batches = list(sampler)
    assert padding(SENTENCES, batches) < 0.05
    filled = SENTENCES.sum() / (len(batches) * 8192)
    assert filled > 0.93
    of_random = max(len(batch) * int(SENTENCES[batch].max()) for batch in random_batches(len(SENTENCES), 100))
    assert of_random > 8192, "random batches of the same mean size exceed the budget"


def test_a_budget_is_filled_to_the_last_token() -> None:
    sampler = LengthBucketBatchSampler([4] * 100, max_tokens=20, pool=5)
    for epoch in range(20):
        sampler.set_epoch(epoch)
        assert [len(batch) for batch in sampler] == [5] * 20


def test_larger_pools_have_less_padding() -> None:
    shares = [
        padding(SENTENCES, list(LengthBucketBatchSampler(SENTENCES, 32, pool=pool))) for pool in (1, 4, 20, 100, None)
    ]
    assert shares == sorted(shares, reverse=True) and shares[0] > 0.4 and shares[-1] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{"batch_size": 7}, {"max_tokens": 900}])
def test_no_length_is_dropped_in_every_epoch(limits: dict[str, Any]) -> None:
    lengths = np.arange(1, 201)
    sampler = LengthBucketBatchSampler(lengths, drop_last=True, pool=4, **limits)
    dropped = np.zeros(200)
    for epoch in range(1500):
        sampler.set_epoch(epoch)
        dropped[np.setdiff1d(np.arange(200), np.concatenate(list(sampler)))] += 1
    tenths = dropped.reshape(10, 20).sum(1)
    assert tenths.min() > tenths.mean() / 4 and tenths.max() < tenths.mean() * 4
    assert dropped.max() < 0.25 * 1500, "no sample is left out in more than a quarter of the epochs"


@pytest.mark.parametrize("limits", [{"batch_size": 8}, {"max_tokens": 2000}, {"batch_size": 8, "max_tokens": 2000}])
def test_batches_follow_from_seed_and_epoch_alone(limits: dict[str, Any]) -> None:
    lengths = SENTENCES[:2000]
    sampler = LengthBucketBatchSampler(lengths, seed=3, **limits)
    state = torch.get_rng_state()
    first = list(sampler)
    assert list(sampler) == first
    begun = iter(sampler)
    head = [next(begun)]
    sampler.set_epoch(1)
    assert head + list(begun) == first, "set_epoch must not change an epoch under way"
    second = list(sampler)
    assert {frozenset(batch) for batch in second}.isdisjoint({frozenset(batch) for batch in first if len(batch) > 2})
    for given_ in (lengths.tolist(), torch.from_numpy(lengths), lengths.astype(np.uint16), tuple(lengths)):
        again = LengthBucketBatchSampler(given_, seed=3 + 2**64, **limits)
        assert list(again) == first
    copied = pickle.loads(pickle.dumps(sampler))
    assert copied.epoch == 1 and list(copied) == second
    assert list(LengthBucketBatchSampler(lengths, seed=4, **limits)) != first
    assert torch.equal(torch.get_rng_state(), state)


def test_batches_come_in_random_order() -> None:
    """The mean lengths of consecutive batches are not correlated."""
    means = [SENTENCES[batch].mean() for batch in LengthBucketBatchSampler(SENTENCES, 32)]
    assert abs(np.corrcoef(means[1:], means[:-1])[0, 1]) < 4.5 / np.sqrt(len(means))


def test_without_shuffling_batches_go_through_the_pools() -> None:
    lengths = [5, 1, 4, 2, 9, 8, 7, 6, 3]
    # Pools of about three: (5, 1, 4), (2, 9, 8), (7, 6, 3); each leaves its shortest sample to the later batches.
    sampler = LengthBucketBatchSampler(lengths, 2, shuffle=False, pool=2)
    assert [[lengths[i] for i in batch] for batch in sampler] == [[5, 4], [9, 8], [7, 6], [3, 2], [1]]
    first = list(sampler)
    sampler.set_epoch(5)
    assert list(sampler) == first
    one = LengthBucketBatchSampler(lengths, max_tokens=12, shuffle=False, pool=None)
    assert [[lengths[i] for i in batch] for batch in one] == [[4, 3, 2], [6, 5], [7], [8], [9], [1]]


# ---- in a loader -----------------------------------------------------------------------------------------------------


class Sentences(torch.utils.data.Dataset):
    """(tokens, label) of different lengths."""

    def __init__(self, count: int) -> None:
        self.lengths = SENTENCES[:count].tolist()

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.arange(self.lengths[index]) + index, index % 3


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_over_sentences(workers: int) -> None:
    data = Sentences(120)

    def made(loader_type: Any) -> list[Any]:
        sampler = LengthBucketBatchSampler(data.lengths, max_tokens=1500, seed=2)
        options = {"num_workers": workers, "collate_fn": PaddingCollate(-1)}
        loader = loader_type(data, batch_sampler=sampler, **options)
        epochs = []
        for epoch in (0, 4):
            (loader if loader_type is headrace.DataLoader else sampler).set_epoch(epoch)
            epochs.append(list(loader))
            assert len(loader) == len(epochs[-1])
        return epochs

    ours, theirs = made(headrace.DataLoader), made(TorchDataLoader)
    for one, other in zip(ours, theirs, strict=True):
        for ((values, lengths), labels), (padded, their_labels) in zip(one, other, strict=True):
            assert torch.equal(values, padded.values) and torch.equal(lengths, padded.lengths)
            assert torch.equal(labels, their_labels) and values.numel() <= 1500
            assert values.shape == (len(labels), int(lengths.max()))
        assert sorted(int(values[i, 0]) for (values, _), _ in one for i in range(len(values))) == list(range(120))
    assert any(not torch.equal(a[0].lengths, b[0].lengths) for a, b in zip(*ours, strict=False))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([1, 2],), ValueError, "give batch_size, max_tokens, or both"),
        (([], 2), ValueError, "lengths is empty"),
        (([3, 1, 900, 800], None, 512), ValueError, "sample 2 is 900 long, more than max_tokens=512.* the 2 samples"),
        (([3, -1], 2), ValueError, "sample 1 has a length of -1"),
        (([3.0], 2), TypeError, "lengths must be integers, one a sample, not float64 of shape"),
        (([[3]], 2), TypeError, "of shape .1, 1."),
        ((["a"], 2), TypeError, "lengths must be integers"),
        (([1], 0), ValueError, "batch_size must be 1 or more"),
        (([1], 2.0), TypeError, "batch_size must be a whole number"),
        (([1], None, 0), ValueError, "max_tokens must be 1 or more"),
        (([1], None, "9"), TypeError, "max_tokens must be a whole number"),
    ],
)
def test_what_is_refused(arguments: tuple[Any, ...], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        LengthBucketBatchSampler(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"seed": None}, TypeError, "seed must be a whole number"),
        ({"pool": 0}, ValueError, "pool must be 1 or more"),
    ],
)
def test_what_options_are_refused(options: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        LengthBucketBatchSampler([1], 1, **options)
    with pytest.raises(ValueError, match="epoch must be 0 or more"):
        LengthBucketBatchSampler([1], 1).set_epoch(-1)
