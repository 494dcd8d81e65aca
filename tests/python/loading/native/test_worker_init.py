"""A worker_init_fn that only seeds keeps the native path; any other one is torch's."""

# ruff: noqa: NPY002 - the functions that people call

from __future__ import annotations

import functools
import logging
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headrace
from headrace import transforms
from headrace._loading.native.worker_init import only_seeds
from torchvision_shim import import_torchvision

SEED = 7
LOG: list[int] = []


def of_the_reproducibility_page(worker_id: int) -> None:
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def with_ranks(worker_id: int, num_workers: int, rank: int, seed: Any) -> None:
    worker_seed = num_workers * rank + worker_id + seed
    np.random.seed(worker_seed)
    random.seed(worker_seed)
    torch.manual_seed(worker_seed)


def closed_over(seed: Any) -> Callable[[int], None]:
    def seeds(worker_id: int) -> None:
        np.random.seed(seed + worker_id)

    return seeds


def sets_a_global(worker_id: int) -> None:
    global SEED
    SEED = worker_id
    random.seed(worker_id)


def opens_the_dataset(worker_id: int) -> None:
    info: Any = torch.utils.data.get_worker_info()
    info.dataset.open()


def uses_generator_state(worker_id: int) -> None:
    np.random.seed(np.random.get_state()[1][0] + worker_id)  # type: ignore[index]


def reads_an_argument(worker_id: Any) -> None:
    random.seed(worker_id)
    worker_id.seed(1)


def logs(worker_id: int) -> None:
    LOG.append(worker_id)


LOGGER = logging.getLogger("test_worker_init")


def seeds_of(base: int, worker: int, count: int) -> list[int]:
    mixed, made = (base << 32) | worker, []
    for _ in range(count):
        mixed = (mixed * 6364136223846793005 + 1) & ((1 << 64) - 1)
        made.append(mixed & 0xFFFFFFFF)
    return made


def by_a_sequence(worker_id: int, rank: int | None = None) -> None:
    """What Lightning does: numbers of a generator of its own, and a message that nobody reads."""
    rank = rank if rank is not None else 0
    base = torch.initial_seed() - worker_id
    LOGGER.debug(f"worker {worker_id}: {base}")
    made = seeds_of(base, worker_id, count=3)
    torch.manual_seed(made[0])
    random.seed((made[1] << 32) | made[2])
    if LOGGER is not None:
        import numpy

        numpy.random.seed(numpy.random.SeedSequence([base, worker_id, rank]).generate_state(4))


def of_the_info(worker_id: int, how: Any = "all") -> None:
    """What timm does."""
    info: Any = torch.utils.data.get_worker_info()
    assert info.id == worker_id
    if callable(how):
        seed = how(info)
        random.seed(seed)
        torch.manual_seed(seed)
    else:
        assert how in ("all", "part")
        if how == "all":
            np.random.seed(info.seed % (2**32 - 1))


def of_a_set_seed(worker_id: int) -> None:
    """A set_seed of one's own, as in many programs."""

    def set_seed(seed: int, deterministic: bool = True) -> None:
        os.environ["PYTHONHASHSEED"] = str(seed)
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.cuda.manual_seed(seed)
        torch.cuda.manual_seed_all(seed)
        if deterministic:
            torch.backends.cudnn.deterministic = True
            torch.backends.cudnn.benchmark = False

    set_seed(torch.initial_seed() % 2**32 + worker_id)


def limits_threads(worker_id: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)


def searches(value: Any, seed: int) -> Any:
    """What MONAI does: seeds every object in the dataset that has a method for it."""
    if isinstance(value, (tuple, list)):
        for one in value:
            seed = searches(one, seed)
        return seed
    if not hasattr(value, "__dict__"):
        return seed
    if hasattr(value, "set_random_state"):
        value.set_random_state(seed=seed % 2**32)
        return seed + 1
    for key in value.__dict__:
        if key.startswith("__"):
            continue
        seed = searches(value.__dict__[key], seed=seed)
    return seed


def of_the_dataset(worker_id: int) -> None:
    info: Any = torch.utils.data.get_worker_info()
    searches(info.dataset, seed=info.seed)


class Holder:
    offset = 3

    def __init__(self) -> None:
        self.seed = 5

    def start(self, worker_id: int) -> None:
        random.seed(self.seed + self.offset_of(worker_id))

    def offset_of(self, worker_id: int) -> int:
        return worker_id * 2

    def store(self, worker_id: int) -> None:
        self.seed = worker_id


def changes_the_dataset(worker_id: int) -> None:
    info: Any = torch.utils.data.get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


def sets_another_variable(worker_id: int) -> None:
    os.environ["MODE"] = "x"


def warns(worker_id: int) -> None:
    LOGGER.error("seen")


def opens_a_file(worker_id: int) -> None:
    seed = int(Path("/proc/self/stat").read_text().split()[0])
    random.seed(seed)


def of_another(worker_id: int) -> None:
    logs(worker_id)
    random.seed(worker_id)


def changes_a_default(worker_id: int, made: list[int] = []) -> None:  # noqa: B006
    made.append(worker_id)
    random.seed(len(made))


class Seeds:
    def __call__(self, worker_id: int) -> None:
        random.seed(worker_id)


@pytest.mark.parametrize(
    "function",
    [
        of_the_reproducibility_page,
        functools.partial(with_ranks, num_workers=2, rank=0, seed=3),
        closed_over(5),
        lambda worker_id: np.random.seed(42 + worker_id),
        lambda worker_id: random.seed(SEED + worker_id),
        uses_generator_state,
        by_a_sequence,
        functools.partial(by_a_sequence, rank=1),
        of_the_info,
        functools.partial(of_the_info, how="part"),
        functools.partial(of_the_info, how=lambda info: info.seed + 1),
        functools.partial(functools.partial(with_ranks, num_workers=2), rank=0, seed=3),
        of_a_set_seed,
        limits_threads,
        Holder().start,
    ],
)
def test_functions_that_only_seed(function: Any) -> None:
    assert only_seeds(function)


@pytest.mark.parametrize(
    "function",
    [
        sets_a_global,
        opens_the_dataset,
        logs,
        reads_an_argument,
        print,
        Seeds(),
        lambda worker_id: time.sleep(0),
        changes_the_dataset,
        sets_another_variable,
        warns,
        opens_a_file,
        of_another,
        changes_a_default,
        of_the_dataset,
        Holder().store,
        functools.partial(of_the_info, how=logs),
        closed_over(LOG),
        functools.partial(with_ranks, num_workers=2, rank=0, seed=LOG),
        lambda worker_id: unknown(worker_id),  # type: ignore[name-defined] # noqa: F821
    ],
)
def test_others(function: Any) -> None:
    assert not only_seeds(function)


class Random:
    def set_random_state(self, seed: int) -> None:
        self.seed = seed


def test_a_search_for_objects_to_seed_finds_none(photographs: list[Any]) -> None:
    files = headrace.ImageFiles(photographs[:2], transform=transforms.ToTensor())
    assert only_seeds(of_the_dataset, files)
    files.transform = transforms.Compose([transforms.ToTensor(), Random()])  # type: ignore[list-item]
    assert not only_seeds(of_the_dataset, files)


def test_functions_of_libraries() -> None:
    import_torchvision()
    timm = pytest.importorskip("timm.data.loader")
    assert only_seeds(functools.partial(timm._worker_init, worker_seeding="all"))


def test_the_function_of_lightning() -> None:
    import_torchvision()
    seed = pytest.importorskip("lightning.fabric.utilities.seed")
    assert only_seeds(functools.partial(seed.pl_worker_init_function, rank=0))
    assert only_seeds(seed.pl_worker_init_function)


def test_the_function_of_transformers() -> None:
    utils = pytest.importorskip("transformers.trainer_utils")
    assert only_seeds(functools.partial(utils.seed_worker, num_workers=2, rank=0))


def test_a_loader_stays_native_and_its_batches_are_the_same(photographs: list[Any]) -> None:
    steps = [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    files = headrace.ImageFiles(photographs[:6], list(range(6)), transform=transforms.Compose(steps))
    batches = []
    for function in (None, of_the_reproducibility_page):
        loader = headrace.DataLoader(files, 3, shuffle=True, num_workers=2, seed=1, worker_init_fn=function)
        assert loader.native
        batches.append([images for images, _ in loader])
    assert all(map(torch.equal, *batches))
    assert "not called: it only seeds generators of worker processes" in str(loader.explain())
    loader = headrace.DataLoader(files, 3, worker_init_fn=logs)
    assert not loader.native
    assert "worker_init_fn does more than to seed generators" in str(loader.explain())


def test_a_function_that_is_set_later_counts(photographs: list[Any]) -> None:
    steps = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
    files = headrace.ImageFiles(photographs[:2], transform=steps)
    loader = headrace.DataLoader(files, 1)
    next(iter(loader))
    loader.worker_init_fn = of_the_reproducibility_page
    next(iter(loader))
    assert loader.native
