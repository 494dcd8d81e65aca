"""A sampler is asked when torch's loader asks it: what it draws, prints or counts comes in the same order as there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import Columns, DataLoader, ImageArray
from headrace import transforms as T

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
COUNT = 23
IMAGES = ImageArray(torch.zeros(COUNT, 4, 4, 3, dtype=torch.uint8), torch.arange(COUNT), T.ToTensor())
COLUMNS = Columns({"label": np.arange(COUNT)})
WORKERS = [(0, None, False), (1, 1, False), (1, 2, True), (2, 2, False), (3, 1, True)]


class Plain(torch.utils.data.Dataset[Any]):
    """The labels alone, as torch's loader delivers them."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> int:
        return index


class Noted:
    """A sampler that notes when it is asked.

    Args:
        log: what happens.
        draw: returns the next index.
        first: number of draws in ``iter``.
        raises_at: number of the item instead of which it raises.
        batches: yields batches of two.
    """

    def __init__(
        self,
        log: list[Any],
        draw: Callable[[], int],
        *,
        first: int = 0,
        raises_at: int | None = None,
        batches: bool = False,
    ) -> None:
        self.log, self.draw, self.first, self.raises_at, self.batches = log, draw, first, raises_at, batches

    def __len__(self) -> int:
        return 17

    def __iter__(self) -> Iterator[Any]:
        self.log.append(("iter", [self.draw() for _ in range(self.first)]))
        return self.items()

    def items(self) -> Iterator[Any]:
        for number in range(len(self)):
            if number == self.raises_at:
                raise LookupError(number)
            item = self.draw()
            self.log.append(("item", number, item))
            yield [item, self.draw()] if self.batches else item
        self.log.append("end")
        self.draw()


SOURCES: dict[str, Callable[[torch.Generator], Callable[[], int]]] = {
    "torch": lambda _: lambda: int(torch.randint(0, COUNT, ())),
    "random": lambda _: lambda: random.randrange(COUNT),
    "numpy": lambda _: lambda: int(np.random.randint(COUNT)),  # noqa: NPY002
    "a generator": lambda g: lambda: int(torch.randint(0, COUNT, (), generator=g)),
}


def labels(batch: Any) -> Any:
    batch = batch["label"] if isinstance(batch, dict) else batch[1] if isinstance(batch, list) else batch
    return batch.tolist() if isinstance(batch, torch.Tensor) else batch


def draws(generator: torch.Generator) -> list[Any]:
    """What the generators give next."""
    numbers = [int(torch.randint(0, 1000, ())), int(torch.randint(0, 1000, (), generator=generator))]
    return [*numbers, random.randrange(1000), int(np.random.randint(1000))]  # noqa: NPY002


def program(make: Any, data: Any, options: Callable[[list[Any], torch.Generator], dict[str, Any]], workers: Any) -> Any:
    """Three epochs, the first two of them left before their ends, with draws of the loop's own in between."""
    torch.manual_seed(1), random.seed(2), np.random.seed(3)  # noqa: NPY002
    generator, log = torch.Generator().manual_seed(4), list[Any]()
    number, prefetch, persistent = workers
    given = {"num_workers": number, "prefetch_factor": prefetch, "persistent_workers": persistent}
    loader = make(data, **options(log, generator), **given)

    def asked(call: Callable[[], Any]) -> Any:
        try:
            made = call()
        except (StopIteration, LookupError) as error:
            return log.append(repr(error))
        return made

    for steps in (2, 4, 20):
        log.append("an epoch")
        iterator = asked(lambda: iter(loader))
        log.append(draws(generator))
        for step in range(steps if iterator is not None else 0):
            log.append(labels(asked(lambda it=iterator: next(it))))  # type: ignore[misc]
            if step % 3 == 1:
                log.append(draws(generator))
    return [*log, draws(generator)]


def same(options: Callable[[list[Any], torch.Generator], dict[str, Any]], workers: Any, data: Any = IMAGES) -> None:
    theirs = program(TorchDataLoader, Plain(), options, workers)
    assert program(DataLoader, data, options, workers) == theirs


@pytest.mark.processes
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_sampler_that_draws_while_the_loop_draws(source: str, workers: tuple[Any, ...]) -> None:
    draw = SOURCES[source]
    for first in (0, 2):
        same(lambda log, g, n=first: {"sampler": Noted(log, draw(g), first=n), "batch_size": 4}, workers)  # type: ignore[misc]
        same(lambda log, g, n=first: {"sampler": Noted(log, draw(g), first=n), "batch_size": None}, workers, COLUMNS)  # type: ignore[misc]
        same(lambda log, g, n=first: {"batch_sampler": Noted(log, draw(g), first=n, batches=True)}, workers)  # type: ignore[misc]
    last = lambda log, g: {"batch_sampler": BatchSampler(Noted(log, draw(g)), 5, True), "generator": g}  # noqa: E731
    same(last, workers)


@pytest.mark.processes
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("at", [0, 3, 9, 16])
def test_an_error_of_the_sampler_comes_where_torch_raises_it(at: int, workers: tuple[Any, ...]) -> None:
    draw = SOURCES["torch"]
    for size in (2, None):
        same(lambda log, g, n=size: {"sampler": Noted(log, draw(g), raises_at=at), "batch_size": n}, workers)  # type: ignore[misc]
    same(lambda log, g: {"batch_sampler": Noted(log, draw(g), raises_at=at, batches=True)}, workers)


TORCHS: dict[str, Callable[[torch.Generator], dict[str, Any]]] = {
    "shuffled": lambda g: {"shuffle": True},
    "shuffled, generator": lambda g: {"shuffle": True, "generator": g},
    "drop_last": lambda g: {"shuffle": True, "generator": g, "drop_last": True},
    "one by one": lambda g: {"shuffle": True, "generator": g, "batch_size": None},
    "with replacement": lambda g: {"sampler": RandomSampler(range(COUNT), True, 40, generator=g)},
    "subset": lambda g: {"sampler": SubsetRandomSampler(range(0, COUNT, 2), generator=g)},
    "weighted": lambda g: {"sampler": WeightedRandomSampler([1.0] * COUNT, 20)},
    "out of order": lambda g: {"shuffle": True, "generator": g, "in_order": False},
}


@pytest.mark.processes
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("name", TORCHS)
def test_generators_are_where_torch_leaves_them(name: str, workers: tuple[Any, ...]) -> None:
    if name == "out of order" and workers[0] > 1:
        pytest.skip("torch hands out batches in another order in each run")
    same(lambda log, g: {"batch_size": 4} | TORCHS[name](g), workers)


@pytest.mark.processes
@pytest.mark.parametrize("workers", WORKERS)
def test_two_iterators_at_once(workers: tuple[Any, ...]) -> None:
    """With persistent workers both are the same one, which goes on with the newer epoch."""

    def two(make: Any, data: Any) -> list[Any]:
        torch.manual_seed(0)
        number, prefetch, persistent = workers
        loader = make(
            data, 4, True, num_workers=number, prefetch_factor=prefetch, persistent_workers=persistent and number > 0
        )
        pairs = [(labels(one), labels(other)) for one, other in zip(loader, loader, strict=False)]
        first = iter(loader)
        begun = [labels(next(first)), labels(next(first))]
        second = iter(loader)
        return [pairs, begun, first is second, labels(next(first)), labels(next(second)), len(second)]

    assert two(DataLoader, IMAGES) == two(TorchDataLoader, Plain())


@pytest.mark.parametrize("between", [False, True], ids=["", "draws in between"])
@pytest.mark.parametrize("restored", [False, True], ids=["", "restored"])
def test_a_state_before_the_first_batch(restored: bool, between: bool) -> None:
    """Without workers the order is drawn with the first batch: a resumed loader draws it from the same numbers."""
    make = lambda: DataLoader(IMAGES, 4, True)  # noqa: E731
    torch.manual_seed(3)
    loader = make()
    iterator = iter(loader)
    if between:
        torch.rand(3)
    state, default = loader.state_dict(), torch.get_rng_state()
    epoch = list(map(labels, iterator))
    other = make()
    other.load_state_dict(state)
    torch.manual_seed(99)
    if restored:
        torch.set_rng_state(default)
    assert list(map(labels, other)) == epoch
