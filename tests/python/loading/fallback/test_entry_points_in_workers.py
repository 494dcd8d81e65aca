"""Entry points where torch delivers: workers share one table, which changes no pixel, and ends with the last loader."""

from __future__ import annotations

import copy
import gc
import mmap
import os
import pickle
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset

import headrace
from headrace import transforms as T
from headrace._base.native import core
from headrace._loading.doors.type_checks import checks
from headrace._storage.entry_points import process_table
from headrace._storage.entry_points.entry_points import Entries
from headrace._storage.entry_points.shared_table import SharedTable
from own_dataset import OwnDataset
from support import PHOTOS, assert_same, open_files, train
from torchvision_shim import import_torchvision

pytestmark = pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
PATHS = sorted(PHOTOS.glob("*.jpg"))


def has_rows(path: Path) -> bool:
    """Whether entry points are for this file: neither progressive nor with restart markers."""
    header = core.jpeg_header(path.read_bytes())
    return not header["progressive"] and header["restart_interval"] == 0


PLAIN = sum(map(has_rows, PATHS))
FEW = 3  # crops at the top right corner, at most, which leave no codes out


@pytest.fixture(autouse=True)
def _no_table_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(process_table, "_of_process", None)
    yield


def own(transform: Any = None) -> OwnDataset:
    return OwnDataset(PATHS, transform or train(48))


@pytest.fixture(autouse=True)
def _no_program_compares_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tests do; tensors are not deferred then."""
    monkeypatch.setattr(checks, "look", lambda: None)


def epochs(loader: Any, count: int = 3) -> list[Any]:
    """The batches of epochs, the crops of each others."""
    made = []
    for epoch in range(count):
        torch.manual_seed(epoch)
        random.seed(epoch)
        np.random.seed(epoch)  # noqa: NPY002 - what albumentations and others draw from
        made += list(loader)
    return made


def ours(dataset: Any = None, points: Any = "auto", **options: Any) -> headrace.DataLoader[Any]:
    made = headrace.DataLoader(dataset or own(), 4, entry_points=points, **options)
    assert made.route == "deferred"
    return made


def entries(loader: headrace.DataLoader[Any]) -> Entries:
    found = loader.stats().entry_points
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("workers", "context", "persistent", "count"),
    [
        (0, None, False, 3),
        pytest.param(2, "fork", False, 3, marks=pytest.mark.processes),
        pytest.param(2, "fork", True, 3, marks=pytest.mark.processes),
        pytest.param(1, "spawn", False, 2, marks=pytest.mark.processes),
        pytest.param(1, "forkserver", True, 2, marks=pytest.mark.processes),
    ],
)
def test_all_workers_of_all_epochs_share_what_one_has_learned(
    workers: int, context: str | None, persistent: bool, count: int
) -> None:
    options: dict[str, Any] = {"num_workers": workers, "multiprocessing_context": context}
    options |= {"persistent_workers": persistent, "shuffle": True}
    expected = epochs(TorchDataLoader(own(), 4, **(options | {"multiprocessing_context": None})), count)
    loader = ours(**options)
    assert_same(epochs(loader, count), expected)
    known = entries(loader)
    assert PLAIN - FEW <= known.images <= PLAIN
    assert count * (PLAIN - FEW) <= known.decodes <= count * PLAIN  # each is counted once, in whatever process
    assert known.entered >= (count - 1) * (PLAIN - FEW)
    assert str(known) in str(loader.stats())
    assert loader.stats().as_dict()["entry_points"]["images"] == known.images
    loader.close()
    assert entries(loader) == known  # what it was when the loader was closed


class Tensors(Dataset[Any]):
    """Images that become deferred tensors at once."""

    def __init__(self) -> None:
        import_torchvision()
        from torchvision.transforms import v2

        crop = v2.RandomResizedCrop(40, antialias=True)
        self.steps = v2.Compose([v2.ToImage(), crop, v2.ToDtype(torch.float32, scale=True)])

    def __len__(self) -> int:
        return len(PATHS)

    def __getitem__(self, index: int) -> Any:
        return self.steps(Image.open(PATHS[index]).convert("RGB"))


class Streamed(IterableDataset[Any]):
    """Crops of a stream, as arrays."""

    def __iter__(self) -> Iterator[Any]:
        for path in PATHS:
            yield torch.tensor(np.asarray(Image.open(path).convert("RGB").crop((20, 80, 60, 110))))


class Cropped(OwnDataset):
    """A crop of each image, from an open file, as an array."""

    def __getitem__(self, index: int) -> Any:
        with self.paths[index].open("rb") as file:
            image = Image.open(file).convert("RGB")
            top = int(torch.randint(40, 90, ()))
            return torch.tensor(np.asarray(image.crop((9, top, 49, top + 30))))


@pytest.mark.parametrize(
    "kind",
    [
        Tensors,
        Streamed,
        lambda: Cropped(PATHS, None),
        lambda: own(import_torchvision().transforms.Compose([T.RandomCrop(40), T.RandomRotation(20), T.ToTensor()])),
    ],
    ids=["tensors", "stream", "arrays of crops", "warps"],
)
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_whatever_is_cropped_learns(kind: Any, workers: int) -> None:
    streams = isinstance(kind(), IterableDataset)  # of no known number of samples: it learns only with a size
    loader, plain = (ours(kind(), one, num_workers=workers) for one in ("1 MB" if streams else "auto", None))
    if streams:
        plain = ours(kind(), num_workers=workers)
    expected = epochs(TorchDataLoader(kind(), 4, num_workers=workers))
    assert_same(epochs(loader), expected)
    assert_same(epochs(plain), expected)
    known = entries(loader)
    assert known.images > PLAIN // 2 and known.entered > known.images
    assert plain.stats().entry_points is None


class Whole(Dataset[Any]):
    """Images that are decoded whole, by two doors."""

    def __len__(self) -> int:
        return len(PATHS)

    def __getitem__(self, index: int) -> Any:
        import cv2

        made: Any = np.array(Image.open(PATHS[index]).convert("RGB")), cv2.imread(str(PATHS[index]))
        return made


@pytest.mark.parametrize("dataset", [Whole(), own(T.Compose([T.Resize((40, 40)), T.ToTensor()]))])
def test_whole_images_are_learned_where_rows_are_decoded_side_by_side(dataset: Any) -> None:
    loader, expected = headrace.DataLoader(dataset, None), list(TorchDataLoader(dataset, batch_size=None))
    for _ in range(3):
        assert_same(list(loader), expected)
    images, known = loader.stats().images, loader.stats().entry_points
    assert images is not None and images.native >= len(PATHS)
    if core.row_lanes() == 0:
        assert known is None  # no file was looked up
    else:
        assert known is not None and known.images > 0 and known.entered >= known.images


def test_loaders_of_a_process_share_a_table_natively_and_deferred() -> None:
    native = headrace.DataLoader(headrace.ImageFiles(PATHS, transform=train(48)), 4)
    assert native.native
    epochs(native, 2)
    known = native.stats().entry_points
    assert known is not None
    first, second = ours(), ours()
    epochs(first, 1)
    epochs(second, 1)
    assert entries(second).entered - known.entered > PLAIN - FEW
    native.close()
    first.close()
    assert process_table._of_process is not None and process_table._of_process() is not None
    second.close()
    gc.collect()
    assert process_table._of_process() is None


class Killing(OwnDataset):
    """Kills its process once: at a sample in the middle."""

    def __init__(self, flag: Path) -> None:
        super().__init__(PATHS * 3, train(48))
        self.flag = flag

    def __getitem__(self, index: int) -> Any:
        if index == len(self) // 2 and self.flag.exists():
            self.flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


def shared_memories() -> int:
    """Files in memory that this process has open, but for those of indexes of videos."""
    return sum("memfd:headrace " in one for one in open_files())


@pytest.mark.processes
def test_a_worker_that_is_killed_leaves_what_it_has_learned(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    gc.collect()
    before = shared_memories()
    loader = ours(Killing(flag), num_workers=2)
    expected = epochs(TorchDataLoader(Killing(flag), 4, num_workers=2))
    flag.touch()
    with pytest.raises((RuntimeError, OSError, EOFError)):
        try:
            epochs(loader, 1)
        except (OSError, EOFError):  # torch was receiving from the worker
            time.sleep(5)  # torch's handler of SIGCHLD raises at whatever line it finds: here
            raise
    assert not flag.exists()
    assert shared_memories() == before + 1
    known = entries(loader)
    assert known.images > 0
    assert_same(epochs(loader), expected)
    assert entries(loader).entered > known.entered
    loader.close()
    del loader
    gc.collect()
    assert shared_memories() == before


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.processes)])
def test_a_damaged_table_costs_time_alone(workers: int) -> None:
    points = headrace.EntryPoints("1 MB")
    loader = ours(None, points, num_workers=workers, persistent_workers=workers > 0)
    expected = epochs(TorchDataLoader(own(), 4, num_workers=workers, persistent_workers=workers > 0), 8)
    rng = np.random.default_rng(5)
    made = epochs(loader, 1)
    with mmap.mmap(points.native.descriptor, 0) as memory:
        used = 4096 + points.counts().bytes
        for epoch in range(1, 8):
            for at in rng.integers(0, used if epoch % 2 else 500, 60).tolist():
                memory[at] = int(rng.integers(256))
            torch.manual_seed(epoch)
            made += list(loader)
    assert_same(made, expected)


def test_limits_and_files(tmp_path: Path) -> None:
    expected = epochs(TorchDataLoader(own(), 4))
    for limit in (1, 2000):
        loader = ours(None, limit)
        assert_same(epochs(loader), expected)
        known = entries(loader)
        assert known.bytes <= limit == known.limit and (known.images == 0) == (limit == 1)
    file = tmp_path / "rows.npz"
    loader = ours(None, headrace.EntryPoints("1 MB", file), num_workers=1)
    epochs(loader, 1)
    loader.close()
    later = ours(None, headrace.EntryPoints("1 MB", file))
    assert_same(epochs(later, 1), expected[: len(expected) // 3])
    assert entries(later).entered > PLAIN // 2


def test_the_argument_without_deferred_images() -> None:
    with pytest.raises(TypeError, match=r"entry_points=.* needs headrace's native path, but torch's"):
        headrace.DataLoader(own(), entry_points="1 MB", deferred_images=False)
    for points in (None, "auto"):
        loader = headrace.DataLoader(own(), entry_points=points, deferred_images=False)
        next(iter(loader))
        assert loader.stats().entry_points is None


def test_copies_learn_for_themselves() -> None:
    loader = ours(None, headrace.EntryPoints("1 MB"))
    first = epochs(loader, 1)
    stats = pickle.loads(pickle.dumps(loader.stats()))
    assert stats.images.entry_points is None and stats.entry_points == loader.stats().entry_points
    for again in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        assert again.stats().entry_points is None
        assert_same(epochs(again, 1), first)
    sent = pickle.loads(pickle.dumps(SharedTable(loader.entry_points.native)))  # type: ignore[union-attr]
    assert sent.native is None  # no process is started: a descriptor would lead nowhere
