"""Mixture: how weights become numbers of samples, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from mixtures import mixture
from torch.utils.data import ConcatDataset, IterableDataset
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data.distributed import DistributedSampler

from headrace.datasets import Mixture, MixturePart, TarStream
from headrace.sampler import DistributedSampler as OurDistributedSampler
from headrace.sampler import MixtureSampler


def of(given: list[Any], lengths: list[int], **options: Any) -> Mixture:
    pairs = zip(lengths, given, strict=True)
    return Mixture({str(n): (range(length), weight) for n, (length, weight) in enumerate(pairs)}, **options)


def samples(*given: Any, epoch: int = 0, **options: Any) -> list[int]:
    return list(of(*given, **options).counts(epoch).samples)


def test_shares_become_whole_numbers() -> None:
    assert samples([0.7, 0.2, 0.1], [100, 100, 50]) == [175, 50, 25]
    assert samples([7, 2, 1], [100, 100, 50], epoch_size=10) == [7, 2, 1]
    assert samples([1, 1, 1], [9, 9, 9], epoch_size=10) == [4, 3, 3]
    assert samples([0.1, 0.2], [10, 10], epoch_size=3 * 10**12) == [10**12, 2 * 10**12]  # 0.1 + 0.2 is 0.3
    assert samples([np.float32(1), np.int64(3)], [5, 5], epoch_size=8) == [2, 6]
    assert samples([None, None], [30, 10], epoch_size=8) == [6, 2]
    assert samples([1, 0], [30, 10]) == [40, 0] and samples([1, 0], [30, 0]) == [30, 0]


def test_epochs_that_exhaust_datasets() -> None:
    """As Hugging Face's interleave_datasets names them: the first that has none left ends it, or the last."""
    assert samples([0.7, 0.2, 0.1], [100, 100, 50], epoch_size="first_exhausted") == [100, 28, 14]
    assert samples([0.7, 0.2, 0.1], [100, 100, 50], epoch_size="all_exhausted") == [350, 100, 50]
    rng = np.random.default_rng(0)
    for _ in range(200):
        lengths, weights = rng.integers(1, 50, 4).tolist(), rng.integers(1, 9, 4).tolist()
        first, last = (samples(weights, lengths, epoch_size=size) for size in ("first_exhausted", "all_exhausted"))
        assert all(n <= length for n, length in zip(first, lengths, strict=True))
        assert any(n == length for n, length in zip(first, lengths, strict=True))
        assert all(n >= length for n, length in zip(last, lengths, strict=True))
        longest = max(Fraction(length, weight) for length, weight in zip(lengths, weights, strict=True))
        assert all(abs(n - longest * weight) < 1 for n, weight in zip(last, weights, strict=True))


def test_temperature_makes_shares_equal() -> None:
    assert samples([None, None], [900, 100], epoch_size=1000) == [900, 100]
    assert samples([None, None], [900, 100], epoch_size=1000, temperature=2) == [750, 250]
    assert samples([None, None], [900, 100], epoch_size=1000, temperature=1e9) == [500, 500]
    assert samples([None, None, 0], [900, 100, 5], epoch_size=1000, temperature=0.5) == [988, 12, 0]


def test_numbers_of_samples() -> None:
    assert samples([30, 0, 7.0], [10, 10, 10], weights="count") == [30, 0, 7]
    assert samples([None, 3], [10, 10], weights="count") == [10, 3]


def test_weights_change_at_an_epoch() -> None:
    made = of([1, 1], [10, 10], epoch_size=8, schedule={2: {"0": 3}})
    assert [made.counts(epoch).samples for epoch in range(4)] == [(4, 4), (4, 4), (6, 2), (6, 2)]
    made.set_weights({"1": 9}, 3)
    assert made.counts(3).samples == made.counts(10**9).samples == (2, 6)
    assert made.schedule == {0: {"0": 1, "1": 1}, 2: {"0": 3, "1": 1}, 3: {"0": 3, "1": 9}}
    assert made.counts(4).earlier == (4 + 4 + 6 + 2, 4 + 4 + 2 + 6)
    assert made.counts(10**12 + 3).earlier == (14 + 2 * 10**12, 10 + 6 * 10**12)
    again = of([1.0, np.int64(1)], [10, 10], epoch_size=8, schedule=made.schedule)
    assert again.describe() == made.describe() == pickle.loads(pickle.dumps(made)).describe()


REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: Mixture({}), ValueError, "at least one dataset"),
    (lambda: Mixture({"a": range(3)}), TypeError, "dataset 'a' must be given as"),  # type: ignore[dict-item]
    (lambda: Mixture({1: (range(3), 1)}), TypeError, "name of a dataset must be a string, not 1"),  # type: ignore[dict-item]
    (lambda: Mixture({"a": (3, 1)}), TypeError, "dataset 'a' must be map-style, with a length, not int"),
    (lambda: of([-1], [3]), ValueError, "weight of '0' must be a number from 0 up, not -1"),
    (lambda: of([float("nan")], [3]), ValueError, "from 0 up, not nan"),
    (lambda: of(["1"], [3]), TypeError, "must be a number or None, not str"),
    (lambda: of([True], [3]), TypeError, "must be a number or None, not bool"),
    (lambda: of([0, 0], [3, 3]), ValueError, "no dataset has a weight above 0 from epoch 0 on"),
    (lambda: of([1, 1], [3, 0]), ValueError, "dataset '1' is empty; give it a weight of 0"),
    (lambda: of([1], [3], epoch_size="longest"), ValueError, "epoch_size must be a number of samples"),
    (lambda: of([1], [3], epoch_size=0), ValueError, "epoch_size must be 1 or more"),
    (lambda: of([1], [3], epoch_size=2.5), TypeError, "epoch_size must be a whole number"),
    (lambda: of([1], [3], temperature=0), ValueError, "temperature must be a number above 0"),
    (lambda: of([1.5], [3], weights="count"), ValueError, "is a number of samples, not 1.5"),
    (lambda: of([1], [3], weights="count", epoch_size=3), ValueError, "leave out epoch_size and temperature"),
    (lambda: of([1], [3], weights="shares"), ValueError, "weights must be 'proportion' or 'count'"),
    (lambda: of([1], [3]).set_weights({"b": 1}, 1), ValueError, "no dataset 'b'; it has 0"),
    (lambda: of([1], [3]).set_weights({"0": 0}, 1), ValueError, "no dataset has a weight above 0 from epoch 1"),
    (lambda: of([1], [3]).set_weights({"0": 1}, -1), ValueError, "epoch must be 0 or more"),
    (lambda: Mixture({"a": MixturePart(range(3), 1, seed=0.5)}), TypeError, "the seed of 'a'"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "kind", "words"), REFUSED)
def test_what_is_refused(make: Callable[[], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        make()


def test_streams_are_refused_with_a_way() -> None:
    class Numbers(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    for stream in (Numbers(), TarStream(["https://host/shard.tar"])):
        with pytest.raises(TypeError, match=r"its samples have no numbers.*headrace.TarShards\(urls\)"):
            Mixture({"a": (stream, 1)})


def test_no_other_sampler_is_taken_by_mistake() -> None:
    """With which the weights would have no effect."""
    made = mixture()
    uses: list[Callable[[], object]] = [
        lambda: len(made),
        lambda: TorchDataLoader(made, shuffle=True),
        lambda: list(TorchDataLoader(made)),
        lambda: DistributedSampler(made, 2, 0),
        lambda: ConcatDataset([made]),
        lambda: list(OurDistributedSampler(made, 2, 0)),
    ]
    for use in uses:
        with pytest.raises(TypeError, match=r"a Mixture has no length.*MixtureSampler"):
            use()
    assert made and isinstance(made, ConcatDataset)


def test_it_is_a_concatenation() -> None:
    made = mixture()
    assert made.names == ("large", "small", "tiny") and made.lengths == {"large": 100, "small": 20, "tiny": 3}
    assert [made[n]["x"] for n in (0, 99, 100, 122)] == [0, 99, 100, 122]
    with pytest.raises(IndexError):
        made[123]
    assert repr(made) == "Mixture(large: 100, small: 20, tiny: 3)"
    batches = list(TorchDataLoader(made, 9, sampler=MixtureSampler(made, 3)))
    assert torch.equal(torch.cat([one["x"] for one in batches]), torch.tensor(list(MixtureSampler(made, 3))))
