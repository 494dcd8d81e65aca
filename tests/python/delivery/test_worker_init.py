"""A worker_init_fn that only seeds keeps the native path; any other one is torch's."""

# ruff: noqa: NPY002 - the functions that people call

from __future__ import annotations

import functools
import random
import time
from typing import Any

import numpy as np
import pytest
import torch

import headrace
from headrace import transforms
from headrace.delivery.worker_init import only_seeds

SEED = 7
LOG: list[int] = []


def of_the_reproducibility_page(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def with_ranks(worker_id, num_workers, rank, seed):
    worker_seed = num_workers * rank + worker_id + seed
    np.random.seed(worker_seed)
    random.seed(worker_seed)
    torch.manual_seed(worker_seed)


def closed_over(seed):
    def seeds(worker_id):
        np.random.seed(seed + worker_id)

    return seeds


def sets_a_global(worker_id):
    global SEED
    SEED = worker_id
    random.seed(worker_id)


def opens_the_dataset(worker_id):
    info = torch.utils.data.get_worker_info()
    info.dataset.open()


def uses_generator_state(worker_id):
    np.random.seed(np.random.get_state()[1][0] + worker_id)


def reads_an_argument(worker_id):
    random.seed(worker_id)
    worker_id.seed(1)


def logs(worker_id):
    LOG.append(worker_id)


class Seeds:
    def __call__(self, worker_id):
        random.seed(worker_id)


@pytest.mark.parametrize(
    "function",
    [
        of_the_reproducibility_page,
        functools.partial(with_ranks, num_workers=2, rank=0, seed=3),
        closed_over(5),
        lambda worker_id: np.random.seed(42 + worker_id),
        lambda worker_id: random.seed(SEED + worker_id),
    ],
)
def test_functions_that_only_seed(function: Any) -> None:
    assert only_seeds(function)


@pytest.mark.parametrize(
    "function",
    [
        sets_a_global,
        opens_the_dataset,
        uses_generator_state,
        logs,
        reads_an_argument,
        print,
        Seeds(),
        lambda worker_id: torch.set_num_threads(1),
        lambda worker_id: time.sleep(0),
        closed_over(LOG),
        functools.partial(with_ranks, num_workers=2, rank=0, seed=LOG),
        lambda worker_id: unknown(worker_id),  # type: ignore[name-defined] # noqa: F821
    ],
)
def test_others(function: Any) -> None:
    assert not only_seeds(function)


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
