"""A limit of the bytes in flight: fewer batches are begun ahead, at least one is made, and batches are the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import Dataset

from headrace import DataLoader
from headrace import transforms as T
from headrace.sampler import PixelBudgetBatchSampler
from support import TENSOR, assert_same, blobs, train

BYTES = 4 * 3 * 32 * 32 * 4 + 4 * 8  # of a batch of 4 images and their labels


def loader(limit: Any, **options: Any) -> Any:
    given = {"shuffle": True, "seed": 1, "num_workers": 2, "prefetch_factor": 5}
    made: Any = DataLoader(blobs(48, train(32)), 4, **given | options, prefetch_bytes=limit)
    assert made.native, made.explain()
    return made


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize(
    ("limit", "ahead"), [(1, 0), (BYTES - 1, 0), (BYTES, 1), (3 * BYTES + 7, 3), (99 * BYTES, 5), ("1 GB", 5)]
)
def test_batches_in_flight(limit: Any, ahead: int, device: str | None) -> None:
    made = loader(limit, device=device)
    iterator = iter(made)
    assert len(iterator.queue.waiting) == 1  # the first, whose size nobody knows
    batches = [next(iterator)]
    for _ in range(3):
        batches.append(next(iterator))
        assert len(iterator.queue.waiting) == ahead
    assert_same([*batches, *iterator], list(loader(None, device=device)))
    assert iterator.queue.ahead == 5


def test_it_bounds_what_the_loader_chooses_itself() -> None:
    made = loader(BYTES, num_workers="auto", prefetch_factor=None)
    iterator = iter(made)
    counts = [len(iterator.queue.waiting) for _ in iterator]
    assert max(counts) == 1
    assert f"at most {BYTES:,} bytes and" in str(made.explain())


def test_batches_of_different_sizes_are_taken_for_the_largest() -> None:
    data = blobs(40, T.Compose(TENSOR))

    def made(limit: int | None) -> Any:
        sampler = PixelBudgetBatchSampler(data, 100_000, seed=2)
        return DataLoader(data, batch_sampler=sampler, collate_fn=list, num_workers=1, prefetch_bytes=limit)

    def size(batch: list[Any]) -> int:
        return int(sum(image.nbytes for image, _ in batch))

    expected = list(made(None))
    assert len({size(batch) for batch in expected}) > 3
    limit = 4 * max(map(size, expected))
    iterator = iter(made(limit))
    found, largest = [], 0
    for batch in iterator:
        found.append(batch)
        largest = max(largest, size(batch))
        assert len(iterator.queue.waiting) <= max(1, limit // largest)
    assert_same(found, expected)


def test_without_threads_nothing_is_ahead() -> None:
    assert_same(loader(1, num_workers=0, prefetch_factor=None), list(loader(None)))


def test_columns_and_states() -> None:
    made = loader(2 * BYTES)
    iterator = iter(made)
    begun = [next(iterator) for _ in range(4)]
    again = loader(1)
    again.load_state_dict(made.state_dict())
    assert_same([*begun, *again], list(loader(None)))


class Own(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(index)


@pytest.mark.parametrize("limit", [0, -1, "many", 1.5, True])
def test_wrong_values(limit: Any) -> None:
    with pytest.raises(ValueError, match="prefetch_bytes must be a number of bytes, or a text"):
        loader(limit)


def test_where_torch_delivers_it_is_refused() -> None:
    with pytest.raises(TypeError, match=r"prefetch_bytes=1000 needs headrace's native path, .*torch's DataLoader"):
        DataLoader(Own(), 2, num_workers=1, prefetch_bytes=1000)
    assert len(list(DataLoader(Own(), 2, prefetch_bytes=None))) == 2
