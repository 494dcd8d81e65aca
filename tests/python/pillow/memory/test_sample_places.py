"""Samples are made at their places in the batch only where nothing can tell the difference."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, default_collate

import headrace
from headrace.pillow.memory import sole_tensors
from headrace.pillow.memory.batch_memory import SamplePlaces
from headrace.pillow.memory.pixel_memory import PixelMemory
from own_dataset import OwnDataset
from torchvision_shim import import_torchvision

FLOATS = np.dtype(np.float32)
SHAPE, SIZE, COUNT = (3, 64, 64), 4 * 3 * 64 * 64, 8

pytestmark = pytest.mark.skipif(not sole_tensors.is_possible(), reason="this torch does not count references")


class Worker:
    """Makes batches as a worker process does, in one block."""

    def __init__(self) -> None:
        self.block = torch.empty(COUNT * SIZE, dtype=torch.uint8).untyped_storage()
        self.is_free = True
        self.places = SamplePlaces(self.unused, least=1)
        self.memory = PixelMemory(self.places)
        self.fetch(lambda: [0])

    def unused(self, size: int) -> Any:
        return self.block if self.is_free and size == self.block.nbytes() else None

    def tensor(self, value: float) -> torch.Tensor:
        made = torch.from_numpy(self.memory.empty(SHAPE, FLOATS))
        return made.fill_(value)

    def fetch(self, make: Callable[[], list[Any]]) -> Any:
        samples = make()
        return self.collate(samples)

    def collate(self, samples: list[Any]) -> Any:
        self.places.begin(samples, sys.getrefcount(samples))
        tensors = [one[0] if isinstance(one, tuple) else one for one in samples]
        batch = self.places.batch_of(tensors) if isinstance(tensors[0], torch.Tensor) else None
        del tensors
        self.places.finish(len(samples))
        return batch

    def learn(self) -> None:
        assert self.fetch(lambda: [(self.tensor(n), n) for n in range(COUNT)]) is None


def is_right(batch: torch.Tensor) -> bool:
    return bool((batch == torch.arange(float(COUNT))[:, None, None, None]).all())


def test_a_batch_is_the_block_that_its_samples_were_made_in() -> None:
    worker = Worker()
    worker.learn()
    for _ in range(5):
        batch = worker.fetch(lambda: [(worker.tensor(n), n) for n in range(COUNT)])
        assert batch.untyped_storage().data_ptr() == worker.block.data_ptr()
        assert batch.shape == (COUNT, *SHAPE)
        assert is_right(batch)
        worker.memory.next_batch()
        worker.memory.next_batch()
        assert worker.memory.count_unused() == {}


def test_samples_made_before_a_block_was_free_are_copied_to_their_places() -> None:
    worker = Worker()
    worker.learn()

    def make() -> list[Any]:
        samples = []
        for n in range(COUNT):
            worker.is_free = n > 2
            samples.append((worker.tensor(n) if n != 5 else worker.tensor(n) * 1, n))
        return samples

    batch = worker.fetch(make)
    assert batch is not None
    assert is_right(batch)


KEPT: list[Any] = []


def _kept(made: Callable[[Any], Any]) -> Callable[[Worker, int], Any]:
    def sample(worker: Worker, n: int) -> Any:
        one = worker.tensor(n), n
        if n == 3:
            KEPT.append(made(one))
        return one

    return sample


@pytest.mark.parametrize(
    "sample",
    [
        _kept(lambda one: one[0]),
        _kept(lambda one: one),
        _kept(lambda one: one[0][1:]),
        _kept(lambda one: one[0].detach()),
        _kept(lambda one: one[0].numpy()),
        _kept(lambda one: one[0].untyped_storage()),
        _kept(lambda one: torch.utils.dlpack.to_dlpack(one[0])),  # type: ignore[attr-defined]
        _kept(lambda one: torch.utils.dlpack.from_dlpack(one[0])),
        lambda worker, n: (worker.tensor(n), n, worker.tensor(n)),  # another number of allocations
        lambda worker, n: (worker.tensor(n).requires_grad_(n == 2), n),
        lambda worker, n: (worker.tensor(n).view(64, 64, 3) if n == 2 else worker.tensor(n), n),
        lambda worker, n: (worker.tensor(n).to(torch.float64) if n == 2 else worker.tensor(n), n),
        lambda worker, n: (worker.tensor(n).transpose(1, 2) if n == 2 else worker.tensor(n), n),
        lambda worker, n: (worker.tensor(n).as_subclass(torch.nn.Buffer) if n == 2 else worker.tensor(n), n),
    ],
)
def test_samples_that_are_not_as_expected_are_left_to_torch(sample: Any) -> None:
    worker = Worker()
    worker.learn()
    KEPT.clear()
    assert worker.fetch(lambda: [sample(worker, n) for n in range(COUNT)]) is None
    KEPT.clear()


def test_samples_in_another_order_or_number_are_left_to_torch() -> None:
    worker = Worker()
    worker.learn()
    assert worker.fetch(lambda: [(worker.tensor(n), n) for n in range(COUNT)][::-1]) is None
    assert worker.fetch(lambda: [(worker.tensor(n), n) for n in range(COUNT - 1)]) is None
    kept = []

    def make() -> list[Any]:
        kept.append([(worker.tensor(n), n) for n in range(COUNT)])
        return kept[-1]  # as __getitems__ may return a list that the dataset keeps

    assert worker.fetch(make) is None
    kept.clear()
    batch = worker.fetch(lambda: [(worker.tensor(n), n) for n in range(COUNT)])
    assert batch is not None
    assert is_right(batch)


def test_samples_that_are_never_as_expected_get_memory_of_their_own() -> None:
    worker = Worker()
    worker.learn()
    for _ in range(3):
        worker.fetch(lambda: [(worker.tensor(n), n) for n in range(COUNT)][::-1])
    one = worker.tensor(0)
    assert one.data_ptr() != worker.block.data_ptr()
    worker.fetch(lambda: [(worker.tensor(n), n) for n in range(COUNT)])
    assert worker.fetch(lambda: [(worker.tensor(n), n) for n in range(COUNT)]) is None


class Strange(Dataset[Any]):
    """Keeps samples of earlier batches, changes them, and lets a child process change one."""

    def __init__(self, images: Any) -> None:
        self.images = images
        self.kept: list[Any] = []

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        made = self.images[index][0]
        for one in self.kept:
            one.fill_(-1)
        self.kept.clear()
        if index % 11 == 3:
            self.kept.append(made[1:] if index % 2 else made)
        if index == 14:
            child = os.fork()
            if child == 0:
                made.fill_(-2)
                os._exit(0)
            os.waitpid(child, 0)
        return {"image": made, "labels": (index, [made.mean()])}


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers", "ignore:This process:DeprecationWarning")
def test_a_dataset_that_keeps_and_changes_its_samples(photographs: list[Path]) -> None:
    T = import_torchvision().transforms
    images = OwnDataset(photographs[:24], T.Compose([T.Resize((224, 200)), T.ToTensor()]))
    expected = [torch.stack([images[at][0] for at in range(n, min(n + 4, 24))]) for n in range(0, 24, 4)]
    means = [torch.stack([one.mean() for one in batch]) for batch in expected]
    for collate_fn in (None, default_collate):
        loader = headrace.DataLoader(Strange(images), 4, num_workers=1, persistent_workers=True, collate_fn=collate_fn)
        for _ in range(3):
            for number, batch in enumerate(loader):
                # A sample that the dataset changes before its batch is collated is changed in torch, too.
                changed = [at for at in range(3) if (4 * number + at) % 11 == 3]
                rest = [at for at in range(4) if at not in changed]
                assert torch.equal(batch["image"][rest], expected[number][rest])
                assert torch.equal(batch["labels"][1][0], means[number])
                for at in changed:
                    assert bool((batch["image"][at, 1:] == -1).all())
                batch["image"].zero_()
