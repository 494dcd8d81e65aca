"""torch.distributed.checkpoint (DCP) saves loaders beside model and optimiser, and loads them into new ones.

A native loader is saved as it is. DCP wants the same keys in the saved state and in that of a new loader; where torch
delivers, the layout is torchdata's, whose keys depend on what has happened, so there the state is saved as one value.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.checkpoint.stateful import Stateful
from torch.utils.data import Dataset, IterableDataset, WeightedRandomSampler

import headrace
from headrace import transforms as T
from own_dataset import OwnDataset
from support import PHOTOS, assert_same, train

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),  # one process saves
    pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"),
    pytest.mark.filterwarnings("ignore:the first .* batches opened no image"),
]
PATHS = sorted(PHOTOS.glob("*.jpg"))


class Rows(Dataset[Any]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        return index, torch.full((3,), index)


class Stream(IterableDataset[int]):
    """A stream with a state of its own."""

    def __init__(self) -> None:
        self.next = 0

    def __iter__(self) -> Any:
        while self.next < 40:
            self.next += 1
            yield self.next - 1
        self.next = 0

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]


def files(**options: Any) -> headrace.DataLoader[Any]:
    images = headrace.ImageFiles(PATHS, list(range(len(PATHS))), train(32))
    return headrace.DataLoader(images, 4, **options)


def mixture() -> headrace.DataLoader[Any]:
    one, other = (
        headrace.ImageFiles(PATHS[part], [part.start] * 10, train(32)) for part in (slice(0, 10), slice(10, 20))
    )
    return headrace.DataLoader(headrace.Mixture({"one": (one, 1), "other": (other, 2)}), 4, seed=0)


def weighted() -> headrace.DataLoader[Any]:
    generator = torch.Generator().manual_seed(1)
    return files(sampler=WeightedRandomSampler([1.0] * len(PATHS), len(PATHS), generator=generator))


class AsOneValue:
    """A loader whose state DCP does not look into, as docs/training.md shows it."""

    def __init__(self, loader: headrace.DataLoader[Any]) -> None:
        self.loader = loader

    def state_dict(self) -> dict[str, Any]:
        return {"pickled": pickle.dumps(self.loader.state_dict())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loader.load_state_dict(pickle.loads(state["pickled"]))


NATIVE: dict[str, Callable[[], headrace.DataLoader[Any]]] = {
    "a seed": lambda: files(shuffle=True, seed=0, num_workers=1),
    "no seed": lambda: files(shuffle=True),
    "a generator": lambda: files(shuffle=True, generator=torch.Generator().manual_seed(3)),
    "a sampler with a generator": weighted,
    "a mixture": mixture,
}
TORCHS: dict[str, Callable[[], headrace.DataLoader[Any]]] = {
    "own images, workers": lambda: headrace.DataLoader(
        OwnDataset(PATHS, T.Compose([T.Resize((32, 32)), T.ToTensor()])), 4, shuffle=True, seed=0, num_workers=2
    ),
    "rows": lambda: headrace.DataLoader(Rows(), 4, shuffle=True),
    "rows, workers": lambda: headrace.DataLoader(Rows(), 4, shuffle=True, num_workers=2),
    "a stream with a state": lambda: headrace.DataLoader(Stream(), 4, num_workers=2),
}


@pytest.mark.parametrize("taken", [0, 3])
@pytest.mark.parametrize("kind", [*NATIVE, *TORCHS])
def test_a_new_loader_goes_on(kind: str, taken: int, tmp_path: Path) -> None:
    make = (NATIVE | TORCHS)[kind]
    for wrap in (lambda one: one, AsOneValue) if kind in NATIVE else (AsOneValue,):
        torch.manual_seed(5)
        loader = make()
        assert loader.native == (kind in NATIVE) and isinstance(loader, Stateful)
        iterator = iter(loader)
        for _ in range(taken):
            next(iterator)
        save({"loader": wrap(loader)}, checkpoint_id=tmp_path / wrap.__name__)
        expected = list(iterator)
        torch.manual_seed(77)
        other = make()
        load({"loader": wrap(other)}, checkpoint_id=tmp_path / wrap.__name__)
        assert_same(list(other), expected)


def test_a_state_of_batches_that_have_overtaken(tmp_path: Path) -> None:
    def make() -> headrace.DataLoader[Any]:
        return files(shuffle=True, seed=0, num_workers=2, in_order=False)

    loader = make()
    iterator = iter(loader)
    before = [label for _ in range(3) for label in next(iterator)[1].tolist()]
    save({"loader": loader}, checkpoint_id=tmp_path / "saved")
    other = make()
    load({"loader": other}, checkpoint_id=tmp_path / "saved")
    after = [label for _, labels in other for label in labels.tolist()]
    assert sorted(before + after) == list(range(len(PATHS)))


@pytest.mark.parametrize("ranks", [(2, 4), (4, 1), (1, 3)])
def test_other_numbers_of_ranks_go_on(ranks: tuple[int, int], tmp_path: Path) -> None:
    """Each image exactly once, but for those that torch repeats to give all ranks equal numbers."""
    first, then = ranks
    loaders = [files(shuffle=True, seed=0, rank=rank, world_size=first) for rank in range(first)]
    iterators = [iter(loader) for loader in loaders]
    before = [label for iterator in iterators for label in next(iterator)[1].tolist()]
    save({"loader": loaders[-1]}, checkpoint_id=tmp_path / "saved")
    after = []
    for rank in range(then):
        loader = files(shuffle=True, seed=0, rank=rank, world_size=then)
        load({"loader": loader}, checkpoint_id=tmp_path / "saved")
        after += [label for _, labels in loader for label in labels.tolist()]
    assert set(before) | set(after) == set(range(len(PATHS)))
    assert len(before) + len(after) - len(PATHS) < first + then
