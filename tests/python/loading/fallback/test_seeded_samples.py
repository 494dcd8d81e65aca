"""With seed=, each sample that torch's DataLoader makes has random numbers of its own, wherever it is made."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from seeded_loaders import COUNT, LOADERS, Noise, comparable, drawing, drawn, listed, samples_of
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, Subset, get_worker_info

from headrace import DataLoader
from own_dataset import OwnDataset
from stateful_datasets import Stream
from support import let_go
from torchvision_shim import import_torchvision

pytestmark = [
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes"),
    pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"),
]


def epochs(loader: DataLoader, count: int = 2) -> list[Any]:
    """The batches of some epochs, and what the process's generators yield after each."""
    torch.manual_seed(7)
    random.seed(8)
    np.random.seed(9)  # noqa: NPY002
    return [(comparable(loader), drawn()) for _ in range(count)]


@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
def test_batches_do_not_depend_on_the_number_of_workers(make: Callable[..., Any]) -> None:
    here = epochs(make())
    assert here[0][0] != here[1][0]
    for workers in (1, 3):
        assert epochs(make(num_workers=workers)) == here


def test_how_workers_run_does_not_matter() -> None:
    here = epochs(LOADERS["shuffled"]())
    kept = LOADERS["shuffled"](num_workers=2, persistent_workers=True, prefetch_factor=5)
    # The process's generators are elsewhere: as in torch, persistent workers keep the base seed of their first epoch.
    assert [batches for batches, _ in epochs(kept)] == [batches for batches, _ in here]
    kept.close()
    for more in (
        {"worker_init_fn": lambda worker: random.seed(worker)},
        {"deferred_images": False, "prefetch_factor": 1},
    ):
        loader = LOADERS["shuffled"](num_workers=2, **more)
        assert epochs(loader) == here
        loader.close()


@pytest.mark.slow
def test_spawned_workers() -> None:
    make = LOADERS["a dataset with a state"]
    assert epochs(make(num_workers=1, multiprocessing_context="spawn"), 1) == epochs(make(), 1)


def test_a_sample_has_its_numbers_in_any_batch_and_order() -> None:
    def samples(**more: Any) -> dict[Any, list[Any]]:
        return samples_of(DataLoader(Noise(), seed=5, collate_fn=listed, **more))

    alone = samples()
    assert samples(batch_size=4, shuffle=True) == alone
    assert samples(batch_sampler=[list(range(COUNT))]) == alone
    single = DataLoader(Noise(), None, seed=5)
    assert {index: [tuple(numbers)] for index, numbers in single} == alone
    assert len({numbers for [numbers] in alone.values()}) == COUNT
    assert samples_of(DataLoader(Noise(), seed=6, collate_fn=listed)) != alone


def test_torchs_subset_makes_samples_alone_too() -> None:
    def samples(size: int) -> dict[Any, list[Any]]:
        return samples_of(DataLoader(Subset(Noise(), range(2, 9)), size, seed=5, collate_fn=listed))

    assert samples(1) == samples(3) == samples(7)


def test_what_a_collate_fn_draws_follows_from_the_number_of_the_batch() -> None:
    def drawn_by_batch(*orders: list[int]) -> list[Any]:
        loader = DataLoader(Noise(), 2, sampler=orders[0], seed=5, collate_fn=drawing)
        return [numbers for _ in orders for _, numbers in loader]

    first = drawn_by_batch([0, 1, 2, 3])
    assert drawn_by_batch([5, 4, 3]) == first
    assert len(set(drawn_by_batch([0, 1, 2, 3], [0, 1, 2, 3]))) == 4


def test_crops_of_real_files(imagenet_dev: Path) -> None:
    T = import_torchvision().transforms
    train = T.Compose([T.RandomResizedCrop(48), T.RandomHorizontalFlip(), T.ToTensor(), T.RandomErasing(0.5)])
    data = OwnDataset(sorted(imagenet_dev.rglob("*.JPEG"))[:24], train)

    def images(**more: Any) -> torch.Tensor:
        batches = list(DataLoader(data, seed=5, **more))
        order = torch.cat([indices for _, indices in batches]).argsort()
        return torch.cat([images for images, _ in batches])[order]

    here = images(batch_size=4)
    for more in ({"batch_size": 4}, {"batch_size": 7, "shuffle": True}, {"batch_size": 4, "deferred_images": False}):
        assert torch.equal(images(num_workers=2, **more), here)


def test_each_occurrence_has_numbers_of_its_own() -> None:
    repeated = DataLoader(Noise(), batch_sampler=[[1, 1], [2, 1], [2]], seed=5, collate_fn=listed)
    found = samples_of(repeated)
    assert len(set(found[1])) == 3 and len(set(found[2])) == 2
    other = samples_of(DataLoader(Noise(), sampler=[2, 1, 1, 2, 1], batch_size=5, seed=5, collate_fn=listed))
    assert other == found
    assert found[1][0] == samples_of(DataLoader(Noise(), seed=5, collate_fn=listed))[1][0]


class Failing(Noise):
    def __getitem__(self, index: int) -> Any:
        found = super().__getitem__(index)
        if index == 4:
            raise LookupError("no fourth")
        return found


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("size", [3, None])
def test_a_sample_that_fails_shifts_no_other(workers: int, size: int | None) -> None:
    good = comparable(DataLoader(Noise(), size, seed=5))
    batches, met = iter(DataLoader(Failing(), size, seed=5, num_workers=workers)), list[Any]()
    before = drawn_next()
    while len(met) < len(good):
        try:
            met.append(repr(next(batches)))
        except LookupError as error:
            let_go(error)
            met.append("failed")
    assert met == ["failed" if number == (1 if size else 4) else one for number, one in enumerate(good)]
    assert before == drawn_next()


def drawn_next() -> tuple[Any, ...]:
    """What the process's generators would yield next."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    numbers = drawn()
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])
    return numbers


class Broken(Dataset[int]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        raise LookupError("no sample")


class BrokenWhole(Broken):
    def __getitems__(self, indices: list[int]) -> list[int]:
        raise LookupError("no batch")


@pytest.mark.parametrize(
    "data", [Broken, BrokenWhole, lambda: Subset(Broken(), [1, 2])], ids=["each", "whole", "subset"]
)
@pytest.mark.parametrize("size", [2, None])
def test_tracebacks_are_torchs(data: Callable[..., Any], size: int | None) -> None:
    words = []
    kinds: tuple[tuple[Any, dict[str, Any]], ...] = ((TorchDataLoader, {}), (DataLoader, {"seed": 1}))
    for kind, more in kinds:
        with pytest.raises(LookupError) as raised:
            next(iter(kind(data(), size, num_workers=1, **more)))
        words.append(str(let_go(raised.value)))
    assert words[0] == words[1] and "Original Traceback" in words[0]


class Knowing(Noise):
    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None and info.dataset is self
        return index, drawn()


def test_the_users_code_sees_its_dataset() -> None:
    assert samples_of(DataLoader(Knowing(), 3, seed=5, num_workers=2, collate_fn=listed)).keys() == set(range(COUNT))


@pytest.mark.parametrize("workers", [0, 1])
def test_the_generators_of_the_process_are_its_users(workers: int) -> None:
    """Torch draws one number for the workers' seeds at the beginning; nothing else is drawn until the end."""
    states = []
    kinds: tuple[tuple[Any, dict[str, Any]], ...] = (
        (TorchDataLoader, {"num_workers": 1}),
        (DataLoader, {"num_workers": workers, "seed": 5}),
    )
    for kind, more in kinds:
        states.append([numbers for _, numbers in epochs(kind(Noise(), 3, collate_fn=listed, **more))])
    assert states[0] == states[1]


def test_an_index_without_a_key_is_refused() -> None:
    data: Any = {object: 1}
    loader = DataLoader(data, None, sampler=[object], seed=5)
    with pytest.raises(
        TypeError, match=r"the sampler yielded an object of builtins\.type; use numbers, .* leave out seed="
    ):
        next(iter(loader))
    assert list(DataLoader(data, None, sampler=[object])) == [1]


def test_explain_says_what_is_seeded() -> None:
    def randomness(data: Any, **more: Any) -> str:
        lines = DataLoader(data, 3, **more).explain().lines
        return next(line.how for line in lines if line.part == "randomness")

    seeded = randomness(Noise(), seed=5, num_workers=2, worker_init_fn=print)
    assert "random, numpy.random and torch are seeded before each sample" in seeded and "worker_init_fn" in seeded
    assert "worker_init_fn" not in randomness(Noise(), seed=5)
    assert "before each sample" not in randomness(Stream(), seed=5)
    assert randomness(Noise()) == "as in torch"
