"""The order of batches equals torch's, uses torch's generators in the same way, and does not depend on threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from support import assert_same, blobs, pictures, train

COUNT = 24
LABELS: Any = range(COUNT)  # a dataset whose batches in torch's loader are the order itself
TINY = T.Compose([T.Resize((2, 2)), T.PILToTensor()])


def labels_of(loader: Any) -> list[Any]:
    """The labels of an epoch, batch by batch."""
    return [batch[1].tolist() if isinstance(batch[1], torch.Tensor) else batch[1] for batch in loader]


def torch_labels_of(loader: TorchDataLoader) -> list[Any]:
    return [batch.tolist() if isinstance(batch, torch.Tensor) else batch for batch in loader]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weights() -> Any:
    return torch.arange(1.0, COUNT + 1)


ORDERS: dict[str, Callable[[torch.Generator | None], dict[str, Any]]] = {
    "in order": lambda g: {"batch_size": 5, "generator": g},
    "shuffled": lambda g: {"batch_size": 5, "shuffle": True, "generator": g},
    "drop_last": lambda g: {"batch_size": 5, "shuffle": True, "drop_last": True, "generator": g},
    "one by one": lambda g: {"batch_size": None, "shuffle": True, "generator": g},
    "replacement": lambda g: {
        "batch_size": 7,
        "sampler": RandomSampler(LABELS, replacement=True, num_samples=80, generator=g),
        "generator": g,
    },
    "weighted": lambda g: {"batch_size": 4, "sampler": WeightedRandomSampler(weights(), 30, generator=g)},
    "subset": lambda g: {"sampler": SubsetRandomSampler([3, 1, 7, 20], generator=g), "generator": g},
    "batch sampler": lambda g: {
        "batch_sampler": BatchSampler(RandomSampler(LABELS, generator=g), 9, True),
        "generator": g,
    },
    "a list": lambda g: {"sampler": [5, 5, 2, -1, 0], "batch_size": 2, "generator": g},
    "lists": lambda g: {"batch_sampler": [[5, 1], [2], [3, 3, 3]], "generator": g},
    "tensors": lambda g: {"sampler": torch.tensor([4, 2, 9]), "batch_size": 2, "generator": g},
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("given", [True, False], ids=["generator", "torch.manual_seed"])
@pytest.mark.parametrize("name", ORDERS)
def test_the_order_is_torchs_for_several_epochs(name: str, given: bool, workers: int) -> None:
    """The numbers that the generators give afterwards are torch's, too: the same count was drawn."""

    def epochs(make: Callable[..., Any], read: Callable[[Any], Any], data: Any, **options: Any) -> list[Any]:
        torch.manual_seed(5)
        own = generator(6) if given else None
        loader = make(data, **ORDERS[name](own), **options)
        seen = [read(loader) for _ in range(3)]
        return [*seen, torch.rand(1), torch.rand(1, generator=own)]

    theirs = epochs(TorchDataLoader, torch_labels_of, LABELS)
    ours = epochs(DataLoader, labels_of, blobs(COUNT, TINY), num_workers=workers)
    assert ours == theirs


def test_persistent_workers_draw_their_base_seed_once_as_in_torch() -> None:
    def epochs(make: Callable[..., Any], read: Callable[[Any], Any], data: Any) -> list[Any]:
        own = generator(6)
        loader = make(data, 5, True, generator=own, num_workers=1, persistent_workers=True)
        return [*(read(loader) for _ in range(3)), torch.rand(1, generator=own)]

    assert epochs(DataLoader, labels_of, blobs(COUNT, TINY)) == epochs(TorchDataLoader, torch_labels_of, LABELS)


def test_two_iterators_at_once_each_have_their_own_order() -> None:
    for options in ({"seed": 3}, {"generator": generator(3)}):
        loader = DataLoader(blobs(COUNT, TINY), 5, True, **options)
        first, second = iter(loader), iter(loader)
        orders = [[label for _ in range(5) for label in next(one)[1].tolist()] for one in (first, second)]
        assert sorted(orders[0]) == sorted(orders[1]) == list(range(COUNT)) and orders[0] != orders[1]
    interleaved, alone = (DataLoader(blobs(COUNT, TINY), 5, True, seed=3) for _ in range(2))
    first, second = iter(interleaved), iter(interleaved)
    mixed = [(next(first)[1].tolist(), next(second)[1].tolist()) for _ in range(5)]
    assert list(map(list, zip(*mixed, strict=True))) == [labels_of(alone), labels_of(alone)]


def test_a_seed_decides_order_and_pixels_whatever_else_is_drawn() -> None:
    def two_epochs(**options: Any) -> list[Any]:
        torch.rand(7)
        loader = DataLoader(blobs(COUNT), 5, True, **options)
        return [*loader, *loader]

    first = two_epochs(seed=8)
    assert_same(two_epochs(seed=8), first)
    assert labels_of(two_epochs(seed=9)) != labels_of(first)
    assert labels_of(first[:5]) != labels_of(first[5:])  # another epoch, another order
    images = {int(label): image for batch in first[:5] for image, label in zip(*batch, strict=True)}
    assert all(
        not torch.equal(image, images[int(label)]) for batch in first[5:] for image, label in zip(*batch, strict=True)
    )


def test_set_epoch_names_the_next_one() -> None:
    loader, other = (DataLoader(blobs(COUNT), 5, True, seed=8) for _ in range(2))
    epochs = [list(loader) for _ in range(4)]
    other.set_epoch(2)
    assert_same(other, epochs[2])
    assert_same(other, epochs[3])
    other.set_epoch(torch.tensor(0))  # type: ignore[arg-type]
    assert_same(other, epochs[0])


def test_set_epoch_is_passed_on_to_samplers() -> None:
    class Epochal(torch.utils.data.Sampler):
        epoch = 0

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

        def __iter__(self) -> Iterator[int]:
            return iter([self.epoch % COUNT, 1])

        def __len__(self) -> int:
            return 2

    loader = DataLoader(blobs(COUNT, TINY), 2, sampler=Epochal())
    loader.set_epoch(7)
    assert labels_of(loader) == [[7, 1]]


@pytest.mark.parametrize("workers", [0, 1, 2, 7])
@pytest.mark.parametrize("prefetch", [1, 2, 9])
def test_threads_and_prefetch_change_nothing(workers: int, prefetch: int) -> None:
    options: dict[str, Any] = {"num_workers": workers, "prefetch_factor": prefetch if workers else None}
    made, expected = (
        [*loader, *loader]
        for loader in (DataLoader(blobs(COUNT), 3, True, generator=generator(2), **one) for one in (options, {}))
    )
    assert_same(made, expected)


def test_a_sample_named_again_is_augmented_anew() -> None:
    """The draws depend on the occurrence in the epoch, not on the limits of batches."""
    order = [4, 4, 1, 4, 1, 4]
    images = {}
    for size in (1, 2, 6):
        batches = DataLoader(blobs(COUNT), size, sampler=order, seed=1)
        images[size] = torch.cat([images for images, _ in batches])
        for a, b in itertools.combinations(range(6), 2):
            assert not torch.equal(images[size][a], images[size][b])
    assert torch.equal(images[1], images[2]) and torch.equal(images[1], images[6])
    plain = DataLoader(blobs(COUNT), 1, seed=1)
    assert torch.equal(
        images[1][0], list(plain)[4][0][0]
    )  # the first occurrence equals that of an epoch without repeats
    weighted = DataLoader(blobs(COUNT), 4, sampler=WeightedRandomSampler(weights(), 40, generator=generator(0)), seed=1)
    assert_same(weighted, weighted.reference())


def test_a_sampler_is_read_as_far_as_its_batches_are_in_flight() -> None:
    read = []

    def order() -> Iterator[int]:
        for index in range(COUNT):
            read.append(index)
            yield index

    class Lazy(SequentialSampler):
        __iter__ = lambda self: order()  # noqa: E731

    data = EncodedImages(pictures(COUNT), None, TINY)
    next(iter(DataLoader(data, 2, sampler=Lazy(data))))
    assert len(read) == 2
    read.clear()
    next(iter(DataLoader(data, 2, sampler=Lazy(data), num_workers=1, prefetch_factor=3)))
    assert len(read) == 8


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ([[0, COUNT]], IndexError, "index 24, out of range for a dataset of 24"),
        ([[-25]], IndexError, "index -25"),
        ([["a"]], TypeError, "'str' object cannot be interpreted as an integer"),
        ([[0.5]], TypeError, "'float' object cannot"),
        ([[[1, 2]]], TypeError, "'list' object cannot"),
        ([[]], IndexError, "list index out of range"),
        ([[1, [2]]], TypeError, "'list' object cannot"),
    ],
)
def test_what_a_sampler_may_not_name(named: list[Any], error: type, words: str) -> None:
    for kind in (DataLoader, torch.utils.data.DataLoader):
        with pytest.raises(error, match=words if kind is DataLoader else None):
            next(iter(kind(blobs(COUNT, TINY), batch_sampler=named)))


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ([["a"]], TypeError, "yielded ..a.."),
        ([[0.5]], TypeError, "integer index"),
        ([[[1, 2]]], TypeError, "integer index"),
        ([[]], IndexError, "empty batch"),
        ([[1, [2]]], TypeError, "integer index"),
    ],
)
def test_what_a_sampler_may_not_name_where_torchs_way_is_not_open(named: list[Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        next(iter(DataLoader(blobs(COUNT, TINY), batch_sampler=named, on_error="skip")))


def test_order_does_not_depend_on_the_transform() -> None:
    one, other = (DataLoader(blobs(COUNT, tf), 5, True, seed=3) for tf in (TINY, train(16)))
    assert labels_of(one) == labels_of(other)
