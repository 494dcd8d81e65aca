"""Native threads decode PNG files: the batches are Pillow's, and only odd files are decoded by it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import headrace
from headrace import DataLoader
from headrace import transforms as T
from png_samples import EXIF, KINDS, odd_pngs, png, sound_pngs
from support import TENSOR, pictures

TRAIN = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), *TENSOR])
EVAL = T.Compose([T.Resize(20), T.CenterCrop(16), *TENSOR])
#: Palettes with transparency, of whose conversion Pillow warns.
WARNED = 2


class Inverted:
    """A Python step."""

    def __call__(self, image: Any) -> Any:
        return image.point(lambda value: 255 - value)


def decoded_by_pillow(loader: DataLoader) -> int:
    """Loads an epoch, compares it with Pillow's, and returns how many files Pillow decoded."""
    count = len(list(loader))
    by_pillow = {stage.name: stage.items for stage in loader.stats().stages}.get("pillow", 0)
    assert loader.verify(count).samples > 0  # raises where one differs
    return by_pillow


RECIPES = {
    "train": TRAIN,
    "eval": EVAL,
    "Python step": T.Compose([T.RandomResizedCrop(24), Inverted(), *TENSOR]),
    "bytes": T.Compose([T.Resize((9, 9)), T.PILToTensor()]),
    "views": T.Views([TRAIN, EVAL]),
}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
def test_sound_files(recipe: str, threads: int) -> None:
    files = list(sound_pngs())
    loader = DataLoader(headrace.EncodedImages(files, transform=RECIPES[recipe]), 8, num_workers=threads, seed=0)
    assert decoded_by_pillow(loader) == WARNED


@pytest.mark.parametrize("device", ["emulated"])
@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
def test_sound_files_for_a_device(device: str) -> None:
    dataset = headrace.EncodedImages([*sound_pngs(), *pictures(12)], transform=TRAIN)
    loader = DataLoader(dataset, 8, num_workers=2, seed=0, device=device, decoder="cpu")
    assert decoded_by_pillow(loader) == WARNED + 2


def test_gray_images_and_indices() -> None:
    files = [png(30, 20, colour, depth, seed=depth) for colour, depth in KINDS]
    gray = headrace.EncodedImages(files, transform=EVAL, mode="L")
    assert decoded_by_pillow(DataLoader(gray, 8, num_workers=2, seed=0)) == 0
    masks = [png(30, 20, colour, depth) for colour, depth in [(3, 8), (3, 4), (3, 1), (0, 8), (0, 4), (0, 2)]]
    crop = T.Compose([T.CenterCrop(16), T.PILToTensor()])
    indices = headrace.EncodedImages(masks, transform=crop, mode="P")
    assert decoded_by_pillow(DataLoader(indices, 3, num_workers=2, seed=0)) == 0


def test_files_that_have_no_indices() -> None:
    for data in (png(colour=2), png(colour=0, depth=1), png(colour=0, depth=16), png(colour=4)):
        loader = DataLoader(headrace.EncodedImages([data], transform=T.PILToTensor(), mode="P"), 1, num_workers=1)
        with pytest.raises(Exception, match="has no palette indices"):
            list(loader)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_odd_files_are_pillows() -> None:
    for number, data in enumerate(odd_pngs()):
        loader = DataLoader(headrace.EncodedImages([data], transform=TRAIN), 1, num_workers=1, seed=number)
        try:
            wanted: Any = next(iter(loader.reference()))
        except Exception as error:
            wanted = str(error)
        try:
            made: Any = next(iter(loader))
        except Exception as error:
            made = str(error)
        if isinstance(wanted, str):
            assert isinstance(made, str), number
        else:
            assert all(map(torch.equal, made, wanted)), number


def test_a_file_that_may_be_turned_is_pillows() -> None:
    files = [png(), png(before=EXIF), png(after=EXIF)]

    class Upright(headrace.EncodedImages):
        upright = True

    loader = DataLoader(Upright(files, transform=EVAL), 3, num_workers=1, seed=0)
    assert decoded_by_pillow(loader) == 2
