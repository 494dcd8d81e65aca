"""Batches equal the oracle's to the bit on every destination: each file, filter, step, dtype, layout, thread count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import DataLoader, ImageFiles
from headrace import transforms as T
from headrace._recipe.steps.recipe import DTYPES
from headrace._recipe.steps.steps import FILTERS
from places import EMULATED_MOST, Place
from support import TENSOR, assert_same, blobs, evaluation, silent_pillow, train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mixture(files: list[Path], place: Place) -> list[Path]:
    """A selection small enough for many recipes, without images that Pillow takes seconds to enlarge."""
    small = [path for path in files if path.stat().st_size < EMULATED_MOST and "jpegdec" not in path.name]
    return small[:: -(-len(small) // 40)]


def dataset(files: list[Path], transform: Any) -> ImageFiles:
    return ImageFiles(files, range(len(files)), transform)


def compare(place: Any, data: Any, **options: Any) -> int:
    """Asserts that an epoch equals the oracle's, and returns its number of batches."""
    loader = place.loader(data, **options)
    with silent_pillow():
        expected = list(loader.reference())
        return assert_same(place.fetched(loader), expected)


@pytest.mark.pixels
def test_every_file_in_training(files: list[Path], place: Place) -> None:
    taken = [path for path in files if place.takes(path)]
    assert compare(place, dataset(taken, train(64)), shuffle=True) == -(-len(taken) // 16)


@pytest.mark.pixels
def test_every_file_in_evaluation(files: list[Path], place: Place) -> None:
    taken = [path for path in files if place.takes(path)]
    small = T.Compose([T.Resize(72), T.CenterCrop(64), *TENSOR])
    assert compare(place, dataset(taken, small)) == -(-len(taken) // 16)


@pytest.mark.pixels
@pytest.mark.parametrize("recipe", [train(), evaluation()], ids=["train", "evaluation"])
def test_recipes_of_usual_size(photographs: list[Path], place: Place, recipe: Any) -> None:
    compare(place, dataset(photographs, recipe), shuffle=True)


@pytest.mark.pixels
@pytest.mark.parametrize("filter", FILTERS)
def test_every_filter_and_both_orders_of_passes(mixture: list[Path], place: Place, filter: str) -> None:
    mode = T.InterpolationMode(filter)
    for recipe in (
        train(40, filter),
        T.Compose([T.Resize((37, 50), mode), T.RandomCrop(33, padding=4), *TENSOR]),
        T.Compose([T.Resize(60, mode, max_size=400), T.CenterCrop(48), *TENSOR]),
    ):
        compare(place, dataset(mixture, recipe))


PADDED = [T.RandomCrop(80, padding=(5, 17, 9, 2), padding_mode=mode, fill=(1, 2, 250)) for mode in ("constant", "edge")]
PADDED += [T.RandomCrop((70, 90), padding=12, padding_mode=mode) for mode in ("reflect", "symmetric")]
PADDED += [T.RandomCrop(150, pad_if_needed=True, fill=77), T.RandomCrop(64, padding=200)]


@pytest.mark.pixels
@pytest.mark.parametrize(
    "steps",
    [
        *([T.Resize(75), step] for step in PADDED),
        [T.RandomResizedCrop(40), T.Grayscale(3)],
        [T.Grayscale(3), T.RandomResizedCrop((33, 65)), T.RandomVerticalFlip()],
        [T.RandomVerticalFlip(1.0), T.RandomHorizontalFlip(0.3), T.Resize((61, 32))],
        [T.CenterCrop(100)],
        [T.Resize((90, 20)), T.CenterCrop((90, 90)), T.Resize(31)],  # two resizes: the CPU does them for a device
    ],
    ids=repr,
)
def test_every_other_step(mixture: list[Path], place: Place, steps: list[Any]) -> None:
    compare(place, dataset(mixture, T.Compose([*steps, *TENSOR])))


@pytest.mark.pixels
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_every_dtype_and_layout(place: Place, dtype: torch.dtype, memory_format: torch.memory_format) -> None:
    steps = [T.ToTensor(), T.ToDtype(dtype)] if dtype.is_floating_point else [T.ToImage()]
    for channels in (1, 3):
        gray = [T.Grayscale()] if channels == 1 else []
        recipe = T.Compose([T.RandomResizedCrop(50), *gray, T.RandomHorizontalFlip(), *steps])
        compare(place, blobs(transform=recipe), memory_format=memory_format, batch_size=7)
        images, _ = next(iter(place.loader(blobs(transform=recipe), memory_format=memory_format)))
        assert images.dtype == dtype and images.is_contiguous(memory_format=memory_format)


@pytest.mark.parametrize("threads", [0, 1, 7])
def test_every_number_of_threads(place: Place, threads: int) -> None:
    data = blobs(transform=train(32))
    expected = list(DataLoader(data, 5, shuffle=True, seed=9))
    loader = place.loader(data, batch_size=5, shuffle=True, seed=9, num_workers=threads)
    assert_same(place.fetched(loader), expected)
