"""Every kind of recipe: the same batches with any number of threads, after resume, and in the oracle."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from headrace import DataLoader, EncodedImages, ImageArray
from headrace import transforms as T
from support import MEAN, STD, TENSOR, assert_same, pictures

CROP, FLIP = T.RandomResizedCrop(48), T.RandomHorizontalFlip()
JITTER = T.ColorJitter(0.4, 0.4, 0.4, 0.1)
SMALL = np.random.default_rng(1).integers(0, 256, (50, 32, 32, 3), dtype=np.uint8)
DIGITS = np.random.default_rng(2).integers(0, 256, (50, 28, 28), dtype=np.uint8)


def photographs(*steps: Callable[[Any], Any]) -> EncodedImages:
    return EncodedImages(pictures(48), range(48), T.Compose([*steps]))


def of_torchvision(torchvision: Any) -> dict[str, Any]:
    """Pipelines of torchvision's own objects."""
    v1, v2 = torchvision.transforms, torchvision.transforms.v2
    floats = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    return {
        "reference, v1": [v1.RandomResizedCrop(48), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.RandomErasing(0.5)],
        "reference, v2": [v2.RandomResizedCrop(48), v2.RandomHorizontalFlip(), v2.PILToTensor(), *floats],
        "tensor order": [v2.ToImage(), v2.RandomResizedCrop(48), v2.RandomHorizontalFlip(), *floats],
        "with a policy": [v1.RandomResizedCrop(48), v1.RandAugment(), v1.ToTensor(), v1.RandomErasing(0.5)],
        "policy on bytes": [v2.ToImage(), v2.RandomResizedCrop(48), v2.TrivialAugmentWide(), *floats],
    }


DATASETS = {
    "jitter": photographs(CROP, FLIP, JITTER, *TENSOR),
    "simclr": photographs(
        *(CROP, FLIP, T.RandomApply([JITTER], 0.8), T.RandomGrayscale(0.2), T.RandomApply([T.GaussianBlur(5)], 0.5)),
        *TENSOR,
    ),
    "choices": photographs(
        T.RandomChoice([T.RandomInvert(), T.RandomPosterize(3), T.RandomSolarize(99.0)]),
        T.RandomOrder([T.RandomAutocontrast(), T.RandomEqualize(), T.Pad(5, 77)]),
        *(CROP, T.ToTensor(), T.RandomErasing(0.6), FLIP),
    ),
    "sharpness, channels": photographs(
        *(CROP, T.RandomAdjustSharpness(2.5), T.RandomPhotometricDistort(), T.RandomAdjustSharpness(0, 0.3), *TENSOR)
    ),
    "views": photographs(
        T.Views([T.Compose([CROP, FLIP, JITTER, *TENSOR]), T.Compose([T.RandomResizedCrop(20), *TENSOR])])
    ),
    "views of CIFAR": ImageArray(
        SMALL,
        range(50),
        T.Views({"padded": T.Compose([T.RandomCrop(32, padding=4), *TENSOR]), "bytes": T.PILToTensor()}),
    ),
    "CIFAR": ImageArray(SMALL, range(50), T.Compose([T.RandomCrop(32, padding=4), FLIP, *TENSOR])),
    "digits": ImageArray(DIGITS, range(50), T.Compose([T.RandomCrop(28, padding=2), T.RandomInvert(), T.ToTensor()])),
}
NAMES = ["reference, v1", "reference, v2", "tensor order", "with a policy", "policy on bytes", *DATASETS]


@pytest.fixture(params=NAMES)
def dataset(request: pytest.FixtureRequest) -> Any:
    if request.param in DATASETS:
        return DATASETS[request.param]
    return photographs(*of_torchvision(request.getfixturevalue("torchvision"))[request.param])


@pytest.mark.slow
def test_same_batches_with_any_number_of_threads_and_after_resume(dataset: Any) -> None:
    def loader(threads: int) -> DataLoader:
        return DataLoader(dataset, 7, shuffle=True, seed=3, num_workers=threads)

    alone = list(loader(0))
    assert assert_same(loader(0), list(loader(0).reference())) == len(alone)
    for threads in (2, 7):
        assert_same(loader(threads), alone)
    for taken in (1, 4):
        first = loader(2)
        list(islice(iter(first), taken))
        second = loader(7)
        second.load_state_dict(first.state_dict())
        assert_same(second, alone[taken:])


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_a_device_delivers_the_same(dataset: Any, memory_format: torch.memory_format) -> None:
    pytest.importorskip("headrace._gpu")
    options: dict[str, Any] = {"batch_size": 7, "shuffle": True, "seed": 3, "memory_format": memory_format}
    expected = list(DataLoader(dataset, **options))
    assert_same(DataLoader(dataset, **options, num_workers=2, device="emulated"), expected)
