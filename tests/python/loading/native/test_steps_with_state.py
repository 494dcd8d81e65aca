"""Python steps that keep something between calls: batches are torch's, or the same in each run."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._lowering.python_steps.step_state import Kept
from support import assert_same, pictures

COUNT = 16
CALLS: dict[str, int] = {"calls": 0}
SHARED_RANDOM = random.Random(5)


class OfNumpy:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __call__(self, image: Any) -> Any:
        return image + float(self.rng.normal())


class OfLegacyNumpy(OfNumpy):
    def __init__(self) -> None:
        self.rng = np.random.RandomState(0)  # type: ignore[assignment]


class OfTorch:
    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, image: Any) -> Any:
        return image + torch.randn((), generator=self.generator)


class OfPython:
    def __init__(self) -> None:
        self.inner = [random.Random(0)]

    def __call__(self, image: Any) -> Any:
        return image + self.inner[0].gauss(0, 1)


class Counter:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, image: Any) -> Any:
        self.calls += 1
        return image + self.calls


class Inherits(Counter):
    def __call__(self, image: Any) -> Any:
        return super().__call__(image)


class Caches:
    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def __call__(self, image: Any) -> Any:
        return image + self.seen.setdefault("first", float(image.mean()))


class Cycles:
    def __init__(self) -> None:
        self.values = itertools.cycle([0.0, 1.0, 2.0])

    def __call__(self, image: Any) -> Any:
        return image + next(self.values)


class OfTheClass:
    calls = 0

    def __call__(self, image: Any) -> Any:
        type(self).calls += 1
        return image + type(self).calls


class Buffered(torch.nn.Module):
    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, image: Any) -> Any:
        self.mean.mul_(0.9).add_(0.1 * image.mean())
        return image - self.mean


class Aliases:
    def __init__(self) -> None:
        self.held = np.zeros(1)

    def __call__(self, image: Any) -> Any:
        rows = [torch.from_numpy(self.held)]
        for row in rows:
            row[0] = row[0] + 1
        return image + float(self.held[0])


def of_a_closure() -> Callable[[Any], Any]:
    calls = 0

    def step(image: Any) -> Any:
        nonlocal calls
        calls += 1
        return image + calls

    return step


def of_a_default(image: Any, made: list[int] = []) -> Any:  # noqa: B006
    made.append(1)
    return image + len(made)


def of_a_global(image: Any) -> Any:
    CALLS["calls"] += 1
    return image + CALLS["calls"]


def of_a_shared_generator(image: Any) -> Any:
    return image + SHARED_RANDOM.random()


GENERATORS = [OfNumpy, OfLegacyNumpy, OfTorch, OfPython]
STATES: list[Callable[[], Any]] = [
    *(Counter, Inherits, Caches, Cycles, OfTheClass, Buffered, Aliases, of_a_closure),
    lambda: of_a_default,
    lambda: of_a_global,
    lambda: Counter().__call__,
    lambda: functools.partial(Counter().__call__),
    lambda: torch.nn.Sequential(Buffered()),
    lambda: T.Lambda(Counter()) if hasattr(T, "Lambda") else Counter(),
]


def data(step: Any, **options: Any) -> EncodedImages:
    return EncodedImages(pictures(COUNT), range(COUNT), T.Compose([T.Resize((8, 8)), T.ToTensor(), step]), **options)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("headrace._loading.fallback.opened_images._warned", True)
    reset()
    yield


def reset() -> None:
    CALLS["calls"] = OfTheClass.calls = 0
    SHARED_RANDOM.seed(5)
    of_a_default.__defaults__[0].clear()  # type: ignore[index]


def epochs(kind: Any, make: Callable[[], Any], workers: int, **options: Any) -> list[Any]:
    reset()
    loader = kind(data(make()), 4, num_workers=workers, **options)
    return [*loader, *loader]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
@pytest.mark.parametrize("make", [*GENERATORS, *STATES, lambda: of_a_shared_generator])
def test_batches_are_torchs(make: Any, workers: int) -> None:
    assert assert_same(epochs(DataLoader, make, workers), epochs(TorchDataLoader, make, workers)) == 8


@pytest.mark.parametrize("make", [*GENERATORS, Counter, Caches, Aliases])
def test_with_a_seed_they_do_not_depend_on_the_number_of_threads(make: Any) -> None:
    alone = epochs(DataLoader, make, 0, seed=3)
    for workers in (1, 3):
        assert_same(epochs(DataLoader, make, workers, seed=3), alone)


class Seedable(OfNumpy):
    """Has generators as albumentations' transforms do."""

    def set_random_seed(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)


OUT_OF_REACH = Seedable()


def call_out_of_reach(image: Any) -> Any:
    return OUT_OF_REACH(image)


def test_generators_that_seeds_do_not_reach_are_a_state() -> None:
    def step(image: Any) -> Any:
        return call_out_of_reach(image)

    assert "out of reach" in Kept([step]).state([0])
    assert not Kept([call_out_of_reach]).state([0])
    assert not Kept([Seedable()]).state([0])
    data = EncodedImages(pictures(COUNT), None, T.Compose([T.Resize((8, 8)), T.ToTensor(), step]))
    assert not DataLoader(data, 4, num_workers=2).native


def test_a_generator_that_a_sample_seeds_is_as_it_was() -> None:
    step = OfPython()
    before = step.inner[0].getstate()
    loader = DataLoader(data(step), 4, seed=3)
    list(loader), loader.verify()
    assert step.inner[0].getstate() == before


def test_explained() -> None:
    assert "Counter changes its 'calls'" in str(DataLoader(data(Counter()), 4, num_workers=2).explain())
    seeded = DataLoader(data(Counter()), 4, num_workers=2, seed=0)
    assert "one sample after another, because Counter changes its 'calls'" in str(seeded.explain())
    assert "draws from a Generator that it holds" in str(DataLoader(data(OfNumpy()), 4, num_workers=2).explain())


class Reads:
    """What most steps are: numbers, tensors and tables that calls only read; new arrays that they change."""

    def __init__(self) -> None:
        self.p, self.sizes, self.mean = 0.5, [4, 8], torch.zeros(3, 1, 1)
        self.table = {"a": np.arange(256)}
        self.steps = [self.first, lambda image: image * 1.0]

    def first(self, image: Any) -> Any:
        made = image.clone()
        made.sub_(self.mean)
        mask = np.ones((8, 8), np.float32)
        for size in self.sizes:
            mask[:size, :size] = 0.0
        found = []
        found.append(self.table["a"][0])
        return made * torch.from_numpy(mask)

    def __call__(self, image: Any) -> Any:
        for step in self.steps:
            image = step(image)
        return image


class Leaves:
    """Stores what no call reads."""

    def __call__(self, image: Any) -> Any:
        self.last = float(image.mean())
        return image


@functools.lru_cache
def table(size: int) -> Any:
    return np.arange(size)


def test_what_calls_only_read_stays_in_threads() -> None:
    for step in (Reads(), Leaves(), lambda image: image + float(table(8)[0])):
        assert DataLoader(data(step), 4, num_workers=2).native
        assert Kept([step]).state([0]) == ""


class Turns:
    """Its label is what it drew for the image."""

    def __init__(self) -> None:
        self.turns = 0

    def __call__(self, image: Any) -> Any:
        self.turns = int(torch.randint(0, 4, ()))
        return image + self.turns

    def label(self, label: int) -> int:
        return self.turns


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_labels_that_follow_from_the_image(workers: int) -> None:
    turns = Turns()
    loader = DataLoader(data(turns, target_transform=turns.label), 4, num_workers=workers)
    plain = torch.cat([images for images, _ in DataLoader(data(torch.nn.Identity()), 4)])
    images, labels = (torch.cat(one) for one in zip(*loader, strict=True))
    assert torch.equal(images, plain + labels[:, None, None, None])
    assert "share an object" in str(loader.explain())


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_labels_of_functions_that_draw_or_count(workers: int) -> None:
    for make in (lambda: lambda label: label + int(torch.randint(0, 99, ())), lambda: Counter()):
        made = []
        for kind in (DataLoader, TorchDataLoader):
            torch.manual_seed(1)
            made.append(list(kind(data(torch.nn.Identity(), target_transform=make()), 4, num_workers=workers)))
        assert_same(*made)
