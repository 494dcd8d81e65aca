"""A collate_fn keeps the native path: it gets the samples that torch would pass, and seeded random numbers."""

from __future__ import annotations

import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_collate, get_worker_info

from headrace import Columns, DataLoader, EncodedImages, Fields
from headrace import transforms as T
from headrace._base.errors import SampleError
from headrace._loading.native.loader_attributes import OnError
from support import TENSOR, WATCHDOG_S, pictures, same

CROPS = T.Compose([T.RandomResizedCrop(8), *TENSOR])
FIXED = T.Compose([T.Resize((8, 8)), *TENSOR])


def photos(count: int = 10, transform: Any = CROPS) -> EncodedImages:
    return EncodedImages(pictures(count), range(count), transform)


def named(samples: list[Any]) -> dict[str, Any]:
    return {"pixels": torch.stack([image for image, _ in samples]), "numbers": [number for _, number in samples]}


def noisy(samples: list[Any]) -> Any:
    images, labels = default_collate(samples)
    share = torch.distributions.Beta(torch.tensor(0.4), torch.tensor(0.4)).sample()
    order = torch.randperm(len(images))
    return images * share + images[order] * (1 - share), labels, torch.rand(2)


class Counted:
    """Changes itself: each worker of torch's has a copy."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, samples: list[Any]) -> Any:
        self.calls += 1
        return default_collate(samples)


COLLATES = [
    *(named, noisy),
    *(lambda samples: tuple(zip(*samples, strict=True)), lambda samples: default_collate(samples)[0]),
]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("collate", COLLATES)
def test_equal_to_the_oracle(collate: Callable[..., Any], workers: int) -> None:
    loader = DataLoader(photos(), 4, True, collate_fn=collate, num_workers=workers, seed=5)
    assert loader.native and "views of the finished batch" in str(loader.explain())
    for _ in range(2):
        expected = list(loader.reference())
        assert same(list(loader), expected) and len(expected) == 3
    assert loader.verify().samples == 10


@pytest.mark.parametrize("collate", [named, lambda samples: samples, len, Counted()])
def test_equal_to_torchs_loader(collate: Callable[..., Any] | Counted) -> None:
    data = photos(transform=FIXED)
    expected = list(TorchDataLoader(data, 4, collate_fn=collate))
    for workers in (0, 2):
        assert same(list(DataLoader(data, 4, collate_fn=collate, num_workers=workers)), expected)


@pytest.mark.parametrize("collate", [lambda sample: sample, lambda sample: (sample[0].mean(), sample[1])])
def test_single_samples(collate: Callable[..., Any]) -> None:
    data = photos(transform=FIXED)
    expected = list(TorchDataLoader(data, None, collate_fn=collate))
    for workers in (0, 2):
        loader = DataLoader(data, None, collate_fn=collate, num_workers=workers)
        assert loader.native and same(list(loader), expected)
    assert same(list(loader.reference()), expected)


def test_images_without_labels_and_rows_of_columns() -> None:
    images = EncodedImages(pictures(5), None, FIXED)
    columns = Columns({"x": torch.arange(10.0).view(5, 2), "y": torch.arange(5)})
    for data in (images, columns):
        expected = list(TorchDataLoader(data, 2, collate_fn=lambda samples: [samples[0], default_collate(samples)]))
        loader = DataLoader(data, 2, collate_fn=lambda samples: [samples[0], default_collate(samples)], num_workers=1)
        assert loader.native and same(list(loader), expected) and same(list(loader.reference()), expected)


def test_the_batch_is_not_copied() -> None:
    loader = DataLoader(photos(), 10, collate_fn=default_collate_again, num_workers=1)
    ((images, _),) = loader
    assert images.untyped_storage().nbytes() == images.nbytes and images.data_ptr() % 4096 == 0  # a slot of the pool


def default_collate_again(samples: list[Any]) -> Any:
    return default_collate(samples)


def test_the_generators_of_the_process_are_left_alone() -> None:
    batches, states = [], []
    for collate, workers in ((None, 0), (noisy, 0), (noisy, 1), (noisy, 2)):
        torch.manual_seed(1)
        batches.append(list(DataLoader(photos(), 4, collate_fn=collate, num_workers=workers, seed=3)))
        states.append(torch.get_rng_state())
    assert same(batches[1], batches[2]) and same(batches[1], batches[3])
    assert all(torch.equal(states[0], one) for one in states)


def test_resumes_in_the_middle_of_an_epoch() -> None:
    loader = DataLoader(photos(), 3, True, collate_fn=noisy, num_workers=2, seed=3)
    whole = list(loader)
    loader.set_epoch(0)
    batches = iter(loader)
    first = next(batches)
    state = loader.state_dict()
    other = DataLoader(photos(), 3, True, collate_fn=noisy, seed=3)
    other.load_state_dict(state)
    assert same([first, *other], whole)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_is_raised_with_its_batch_and_the_next_one_follows(workers: int) -> None:
    def picky(samples: list[Any]) -> Any:
        if samples[0][1] == 4:
            raise ValueError("not this one")
        return [number for _, number in samples]

    batches = iter(DataLoader(photos(), 2, collate_fn=picky, num_workers=workers))
    assert [next(batches), next(batches)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match=r"^not this one$"):
        next(batches)
    assert list(batches) == [[6, 7], [8, 9]]


@pytest.mark.parametrize("workers", [0, 2])
def test_failed_samples(workers: int) -> None:
    data = EncodedImages([*pictures(4), b"broken", *pictures(3)], range(8), FIXED)
    options: dict[str, Any] = {"collate_fn": named, "num_workers": workers}
    with pytest.raises(SampleError, match="sample 4"):
        list(DataLoader(data, 4, **options))
    ways: tuple[tuple[OnError, list[int]], ...] = (("skip", [5, 6, 7]), ("replace", [5, 5, 6, 7]))
    for on_error, numbers in ways:
        loader = DataLoader(data, 4, on_error=on_error, **options)
        with pytest.warns(UserWarning, match="1 samples could not be made"):
            batches = list(loader)
        assert [batch["numbers"] for batch in batches] == [[0, 1, 2, 3], numbers]
        assert same(batches, list(loader.reference()))


SHARED: list[int] = []


def recording(samples: list[Any]) -> Any:
    SHARED.append(len(samples))
    return default_collate(samples)


def shuffling(samples: list[Any]) -> Any:
    random.shuffle(samples)
    return default_collate(samples)


def asking(samples: list[Any]) -> Any:
    return get_worker_info(), default_collate(samples)


@pytest.mark.parametrize(
    ("collate", "reason"),
    [(recording, "may change an object"), (shuffling, "draws random numbers"), (asking, "asks for the worker")],
)
def test_what_is_not_safe_in_threads_is_torchs(collate: Callable[..., Any], reason: str) -> None:
    loader = DataLoader(photos(), 4, collate_fn=collate)
    assert loader.route == "deferred" and reason in str(loader.explain())


def test_where_it_is_called() -> None:
    names = []

    class Named:
        def __call__(self, samples: list[Any]) -> str:
            return threading.current_thread().name

    for workers in (0, 1):
        names.append(set(DataLoader(photos(), 2, collate_fn=Named(), num_workers=workers, prefetch_factor=None)))
    assert names[0] == {"MainThread"} and names[1] <= {"MainThread", "headrace-collate"}


class Growing:
    """Its result depends on the number of its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, samples: list[Any]) -> Any:
        self.calls += 1
        return self.calls, threading.current_thread().name


def test_an_object_that_changes_itself_is_called_in_order() -> None:
    loader = DataLoader(photos(), 2, collate_fn=Growing(), num_workers=3, seed=0)
    assert loader.native and "Growing" in str(loader.explain())
    assert list(loader) == [(number, "MainThread") for number in range(1, 6)]


def test_without_a_seed_each_worker_process_has_a_copy_of_it() -> None:
    loader = DataLoader(photos(), 2, collate_fn=Growing(), num_workers=2)
    assert loader.route == "deferred" and "Growing changes its 'calls'" in str(loader.explain())
    assert [number for number, _ in loader] == [1, 1, 2, 2, 3]
    assert [number for number, _ in DataLoader(photos(), 2, collate_fn=Growing())] == [1, 2, 3, 4, 5]


def test_a_dropped_iterator_ends_its_threads() -> None:
    before = threading.enumerate()  # with those of iterators that earlier tests left to the garbage collector
    loader = DataLoader(photos(), 2, collate_fn=named, num_workers=2)
    batches = iter(loader)
    next(batches)
    gone = weakref.ref(batches)
    threads = [one for one in threading.enumerate() if one.name == "headrace-collate" and one not in before]
    assert threads
    del batches
    for thread in threads:
        thread.join(WATCHDOG_S)
    assert gone() is None and not any(thread.is_alive() for thread in threads)


class Slow:
    """Blocks until `go_on` is set."""

    def __init__(self) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()

    def __call__(self, samples: list[Any]) -> int:
        self.entered.set()
        self.go_on.wait(WATCHDOG_S)
        return len(samples)

    def __deepcopy__(self, memo: Any) -> Slow:
        return self


def test_a_slow_collate_fn_is_bound_by_the_timeout() -> None:
    slow = Slow()
    batches = iter(DataLoader(photos(4), 2, collate_fn=slow, num_workers=1, timeout=1))
    try:
        assert slow.entered.wait(WATCHDOG_S)  # a thread is collating the first batch
        with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
            next(batches)
    finally:
        slow.go_on.set()
    assert list(batches) == [2, 2]


def test_views_and_fields() -> None:
    views = T.Views([CROPS, T.Compose([T.Resize((6, 6)), *TENSOR])])
    seen = Fields({"image": photos(8, FIXED), "views": photos(8, views), "x": np.arange(16.0).reshape(8, 2)})
    for data in (photos(8, views), seen):

        def collate(samples: list[Any]) -> Any:
            return default_collate(samples), len(samples), type(samples[0])

        for workers in (0, 2):
            loader = DataLoader(data, 3, True, collate_fn=collate, num_workers=workers, seed=2)
            assert loader.native
            expected = list(loader.reference())
            assert same(list(loader), expected) and len(expected) == 3


def test_samples_of_fields_are_the_datasets_own() -> None:
    data = Fields({"image": photos(4, FIXED), "x": np.arange(8.0).reshape(4, 2), "name": list("abcd")})
    expected = list(TorchDataLoader(data, 2, collate_fn=list))
    loader = DataLoader(data, 2, collate_fn=list, num_workers=1)
    assert loader.native and same(list(loader), expected)
