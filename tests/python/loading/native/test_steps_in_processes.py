"""A transform that runs in Python for long: threads call it up to three workers, torch's processes from four on."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageFilter
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Subset

import headrace
from headrace import DataLoader
from headrace._base.native import has_gil
from support import assert_same, train, write_folder
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
T = torchvision.transforms
pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),  # on a machine with fewer cores
    pytest.mark.skipif(not has_gil(), reason="without the GIL threads call steps of any length"),
]


class Sharpened:
    """Draws from torch's generator, as torchvision's transforms do."""

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.filter(ImageFilter.SHARPEN) if torch.rand(()) < 0.5 else image


class Softened:
    """Draws from Python's generator, as most hand-written transforms do."""

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))


def recipe(*steps: Any) -> Any:
    return T.Compose([T.RandomResizedCrop(32), *steps, T.ToTensor()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("images"), 24)


@pytest.fixture
def data(folder: Path) -> Any:
    return torchvision.datasets.ImageFolder(folder, recipe(Sharpened()))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headrace._loading.fallback.opened_images._warned", True)
        yield


def test_number_of_workers_decides(data: Any) -> None:
    routes = {number: DataLoader(data, 6, num_workers=number).route for number in (0, 1, 3, 4, 16)}
    assert routes == {0: "native", 1: "native", 3: "native", 4: "deferred", 16: "deferred"}


def test_batches_of_processes_are_torchs(data: Any) -> None:
    def epochs(kind: Any) -> list[Any]:
        torch.manual_seed(3)
        loader = kind(data, 6, shuffle=True, num_workers=4)
        return [*loader, *loader]

    assert assert_same(epochs(DataLoader), epochs(TorchDataLoader)) == 8


@pytest.mark.parametrize(
    "asked", [{"seed": 0}, {"dtype": torch.float16}, {"on_error": "skip"}, {"rank": 0, "world_size": 2}]
)
def test_arguments_that_ask_for_threads(data: Any, asked: dict[str, Any]) -> None:
    assert DataLoader(data, 6, num_workers=8, **asked).native


@pytest.mark.parametrize("given", [{"device": "cpu"}, {"max_errors": 3}, {"out_transform": list}])
def test_arguments_that_fit_both(data: Any, given: dict[str, Any]) -> None:
    assert DataLoader(data, 6, num_workers=8, **given).route == "deferred"


def test_a_number_that_the_loader_chooses(data: Any) -> None:
    assert DataLoader(data, 6, num_workers="auto").native


def test_without_the_gil_threads_do_not_wait(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert DataLoader(data, 6, num_workers=8).native


def test_short_steps_stay_in_threads(folder: Path) -> None:
    data = torchvision.datasets.ImageFolder(folder, recipe(T.Lambda(lambda image: image.convert("RGB"))))
    assert DataLoader(data, 6, num_workers=8).native
    tail = [T.Lambda(lambda values: values[:1].repeat(3, 1, 1)), T.Normalize((0.5,) * 3, (0.2,) * 3), T.RandomErasing()]
    data.transform = T.Compose([T.RandomResizedCrop(32), T.ToTensor(), *tail])
    loader = DataLoader(data, 6, num_workers=8)
    assert loader.native and "called in Python" in str(loader.explain())


def test_parts_of_a_dataset(data: Any, folder: Path) -> None:
    assert DataLoader(Subset(data, range(12)), 6, num_workers=8).route == "deferred"
    own = headrace.ImageFolder(folder, recipe(Sharpened()))
    assert DataLoader(own, 6, num_workers=8).native
    derived = type("Photos", (headrace.ImageFolder,), {})(folder, recipe(Sharpened()))
    assert DataLoader(derived, 6, num_workers=8).native
    assert DataLoader(torchvision.datasets.ImageFolder(folder, train(32)), 6, num_workers=8).native


def test_explained(data: Any) -> None:
    reason = (
        "Sharpened would run in Python, where 8 threads wait for one interpreter, and worker processes have one each; "
        "seed= makes batches that do not depend on num_workers, in threads"
    )
    assert reason in str(DataLoader(data, 6, num_workers=8).explain())


def test_decided_again_for_each_epoch(data: Any) -> None:
    loader = DataLoader(data, 6, num_workers=4)
    data.transform = train(32)
    torch.manual_seed(1)
    assert sum(len(images) for images, _ in loader) == 24
    loader = DataLoader(data, 6, num_workers=4)
    assert loader.native
    list(loader)
    data.transform = recipe(Sharpened())
    torch.manual_seed(2)
    made = list(loader)
    assert not loader.native
    torch.manual_seed(2)
    assert_same(made, TorchDataLoader(data, 6, num_workers=4))


def test_steps_that_draw_from_the_process_overlap_with_the_training_step(folder: Path) -> None:
    """In threads they would have to wait for the caller, whose own step may draw from the same generators."""
    data = torchvision.datasets.ImageFolder(folder, recipe(Softened()))
    routes = {number: DataLoader(data, 6, num_workers=number).route for number in (0, 1, 2, 4)}
    assert routes == {0: "deferred", 1: "deferred", 2: "deferred", 4: "deferred"}
    assert "Softened may draw from generators of the process" in str(DataLoader(data, 6, num_workers=1).explain())
    made = {}
    for kind in (DataLoader, TorchDataLoader):
        torch.manual_seed(3)
        made[kind] = list(kind(data, 6, shuffle=True, num_workers=2))
    assert_same(made[DataLoader], made[TorchDataLoader])


def test_with_a_seed_they_make_the_same_batches_for_any_number(folder: Path) -> None:
    data = torchvision.datasets.ImageFolder(folder, recipe(Softened()))
    loaders = [DataLoader(data, 6, shuffle=True, num_workers=number, seed=4) for number in (0, 1, 3)]
    assert [one.route for one in loaders] == ["deferred"] * 3
    first, *others = (list(one) for one in loaders)
    for other in others:
        assert_same(other, first)
    assert DataLoader(data, 6, num_workers=2, on_error="skip").native
    assert DataLoader(headrace.ImageFolder(folder, recipe(Softened())), 6, num_workers=2, seed=4).native
