"""RandomErasing in records: boxes of constant values cross to the main process; others are made by the worker."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from record_datasets import COUNT, Labelled, Views, write_damaged
from record_loaders import EDGE, MEAN, ON_DEVICE, STD, assert_alike

from headrace import DataLoader

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("idle_cores")]

COLOUR = (0.5, -1.25, 3.0)
LOADERS = [pytest.param(DataLoader, id="memory"), pytest.param(ON_DEVICE, id="device")]


def erasing(version: str, value: Any, p: float = 0.6) -> Any:
    """A training recipe that ends with RandomErasing."""
    if version == "v1":
        from torchvision import transforms

        steps = [transforms.RandomResizedCrop(EDGE), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
        return transforms.Compose([*steps, transforms.RandomErasing(p, value=value)])
    from torchvision.transforms import v2

    bytes_of = [v2.ToImage(), v2.RandomResizedCrop(EDGE, antialias=True), v2.RandomHorizontalFlip()]
    floats = {
        "v2": [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)],
        "v2 half": [v2.ToDtype(torch.float16, scale=True)],
        "v2 bytes": [],
    }[version]
    return v2.Compose([*bytes_of, *floats, v2.RandomErasing(p, value=value)])


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("version, value", [("v1", 0), ("v1", COLOUR), ("v2", COLOUR), ("v2 half", 0), ("v2 bytes", 9)])
def test_boxes_of_constant_values_are_recorded(
    version: str, value: Any, loader: Any, paths: list[Path], torchvision: Any
) -> None:
    make = functools.partial(Labelled, paths, erasing(version, value))
    images = assert_alike(make, loader, num_workers=1, batch_size=None if version == "v2" else 4)
    assert images.recorded.total() == COUNT and not images.natively, images


@pytest.mark.parametrize("loader", LOADERS)
def test_views_are_erased_each_for_itself(loader: Any, paths: list[Path], torchvision: Any) -> None:
    images = assert_alike(lambda: Views(paths, erasing("v2", 0)), loader, num_workers=1)
    assert images.recorded.total() == COUNT and set(images.fields.values()) == {"recorded"}


def test_damaged_files_are_erased(paths: list[Path], tmp_path: Path, torchvision: Any) -> None:
    broken = write_damaged(paths[0], tmp_path / "broken.jpg")
    images = assert_alike(lambda: Labelled([broken, *paths[1:]], erasing("v1", 0, 1.0)), DataLoader, num_workers=1)
    assert images.recorded.total() == COUNT


def test_images_without_a_box_need_no_engine_of_their_own(paths: list[Path], torchvision: Any) -> None:
    """From the first box on; before it, there is one more."""
    loader = DataLoader(Labelled(paths * 2, erasing("v2", 0, 0.3)), batch_size=None, num_workers=1)
    random.seed(1)
    torch.manual_seed(1)
    for _ in loader:
        engines = len(loader._torch_epochs._device_batches._engines._engines)  # type: ignore[union-attr]
        assert engines <= 2


def own_values(image: torch.Tensor) -> torch.Tensor:
    """Erases with a value that no other sample has."""
    from torchvision.transforms.functional import erase

    return erase(image, 1, 2, 3, 4, torch.rand(3, 1, 1))


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(
    "step, why",
    [
        ("random", "they are erased with values that differ from pixel to pixel"),
        (own_values, "they are erased with many values"),
    ],
)
def test_other_boxes_are_made_by_the_worker(
    step: str | Callable[[Any], Any], why: str, loader: Any, paths: list[Path], torchvision: Any
) -> None:
    if isinstance(step, str):
        transform = erasing("v1", "random", 1.0)
    else:
        transform = torchvision.transforms.Compose([*erasing("v1", 0).transforms[:-1], step])
    images = assert_alike(lambda: Labelled(paths, transform), loader, num_workers=1, batch_size=5)
    assert images.natively.total() == COUNT and not images.recorded
    assert images.fields["[0]"].startswith(f"in the worker, because {why}"), images.fields
