"""A strict count: where the dataset runs, no pixel is made of what is recorded."""

from __future__ import annotations

import functools
import multiprocessing
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from record_datasets import COUNT, Crops, InMemory, Labelled, Stream, Views
from record_loaders import EDGE, MEAN, ON_DEVICE, STD, assert_alike, delivered

from headrace import DataLoader
from headrace._base.native import core

pytestmark = pytest.mark.processes

#: All functions through which Python code gets pixels of files: the device's threads call the native pipeline instead.
MAKERS = (
    *("decode_crop", "decode_fuse", "decode_whole", "decode_png"),
    *("fuse", "float_resize", "resize_values", "tensor_warp", "blur", "mix"),
)


@pytest.fixture
def calls(paths: list[Path], train_v2: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, int]]:
    """Returns how often each of these was called since, in this process and in its workers, which are forked."""
    delivered(ON_DEVICE, Labelled(paths[:1], train_v2), num_workers=0)  # compares resizes with torchvision's, once
    counts = {name: multiprocessing.get_context("fork").Value("q", 0) for name in MAKERS}

    def counted(name: str, *arguments: Any, **options: Any) -> Any:
        with counts[name].get_lock():
            counts[name].value += 1
        return originals[name](*arguments, **options)

    originals = {name: getattr(core, name) for name in MAKERS}
    for name in MAKERS:
        monkeypatch.setattr(core, name, functools.partial(counted, name))
    return lambda: {name: one.value for name, one in counts.items() if one.value}


class Masked(Labelled):
    """An image and its mask, a PNG with a palette, with the same crop and flip."""

    def __init__(self, paths: list[Path], transform: Any) -> None:
        super().__init__(paths, transform)
        self.masks = [path.with_suffix(".png") for path in paths]
        for path, mask in zip(paths, self.masks, strict=True):
            with Image.open(path) as image:
                size = image.size
            drawn = Image.fromarray(np.random.default_rng(1).integers(0, 5, size[::-1], dtype=np.uint8), "P")
            drawn.putpalette(range(60))
            drawn.save(mask)

    def __getitem__(self, index: int) -> Any:
        from torchvision.transforms import functional as F
        from torchvision.transforms import v2

        image, mask = self.open(index), Image.open(self.masks[index])
        box = random.randrange(20), random.randrange(20), 40, 45
        image = F.resized_crop(image, *box, [EDGE, EDGE])
        mask = F.resized_crop(mask, *box, [EDGE, EDGE], F.InterpolationMode.NEAREST)
        if random.random() < 0.5:
            image, mask = F.hflip(image), F.hflip(mask)
        return F.normalize(F.to_tensor(image), MEAN, STD), v2.functional.pil_to_tensor(mask).long()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("version", ["train_plain", "train_v2"])
@pytest.mark.parametrize("kind", [Labelled, InMemory, Stream, Views, Crops])
def test_no_pixel_is_made_where_the_dataset_runs(
    kind: Any,
    version: str,
    workers: int,
    paths: list[Path],
    request: pytest.FixtureRequest,
    calls: Callable[[], dict[str, int]],
) -> None:
    make = functools.partial(kind, paths, request.getfixturevalue(version))
    for options in ({"batch_size": 4}, {"batch_size": None}):
        images = assert_alike(make, num_workers=workers, **options)
        assert dict(images.recorded) == {"PIL.Image.open": COUNT}
        assert not images.natively and not images.by_others and not images.here
        assert calls() == {}


@pytest.fixture
def train_plain(torchvision: Any) -> Any:
    """The most common recipe."""
    from torchvision import transforms

    steps = [transforms.RandomResizedCrop(EDGE), transforms.RandomHorizontalFlip()]
    return transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])


@pytest.mark.parametrize("workers", [0, 2])
def test_masks_are_made_where_the_dataset_runs_and_their_images_are_not(
    workers: int, paths: list[Path], torchvision: Any, calls: Callable[[], dict[str, int]]
) -> None:
    images = assert_alike(lambda: Masked(paths, None), num_workers=workers)
    assert images.recorded.total() == images.natively.total() == COUNT
    assert images.fields["[0]"] == "recorded"
    assert calls() == {"decode_png": COUNT}


def test_the_count_sees_pixels(paths: list[Path], train: Any, calls: Callable[[], dict[str, int]]) -> None:
    """Without a device, and where the program looks."""
    delivered(DataLoader, Crops(paths, train))
    assert calls()["decode_whole"] == COUNT
    before = calls()["fuse"] + calls().get("decode_fuse", 0)

    class Summed(Labelled):
        def __getitem__(self, index: int) -> torch.Tensor:
            image: torch.Tensor = super().__getitem__(index)[0]
            return image.sum()

    delivered(ON_DEVICE, Summed(paths, train))
    assert calls()["fuse"] + calls()["decode_fuse"] - before == COUNT
