"""Loaders with augmentation policies: native, verified against the oracle, on a device, in random chains."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch

import headrace.transforms as H
from headrace import DataLoader, EncodedImages, ImageArray
from support import MEAN, STD, TENSOR, assert_same, pictures

FLIP = H.RandomHorizontalFlip()
OURS: dict[str, list[Any]] = {
    "rand": [H.RandomResizedCrop(48), FLIP, H.RandAugment(3, 15, interpolation="bilinear"), *TENSOR],
    "trivial": [FLIP, H.TrivialAugmentWide(fill=(7, 90, 200)), H.Resize(40), H.CenterCrop(36), *TENSOR],
    "learned": [H.AutoAugment(), H.RandomResizedCrop(40), FLIP, *TENSOR],
    "chains": [
        H.RandomCrop(50, pad_if_needed=True),
        H.RandomOrder([H.RandAugment(1), FLIP, H.RandomAdjustSharpness(3), H.ColorJitter(0.4, hue=0.1)]),
        H.RandomChoice([H.AutoAugment(H.AutoAugmentPolicy.CIFAR10), H.TrivialAugmentWide(5), H.RandomGrayscale(1.0)]),
        H.RandomApply([H.AutoAugment(H.AutoAugmentPolicy.SVHN), H.RandomVerticalFlip()], 0.7),
        H.RandomCrop(40, 3),
        *(*TENSOR, H.RandomErasing(0.5)),
    ],
    "views": [
        H.Views([H.Compose([H.RandomResizedCrop(size), H.RandAugment(), H.ToImage()]) for size in (40, 24)]),
    ],
}


def assert_native(loader: DataLoader) -> None:
    assert loader.native, loader.explain()
    assert "Augment" in str(loader.explain())
    assert not any(line.runs == "Python" and "Augment" in line.part for line in loader.explain().lines)


@pytest.mark.parametrize("policy", ["RandAugment", "TrivialAugmentWide", "AutoAugment"])
def test_torchvisions_preset(T: ModuleType, policy: str) -> None:
    """What torchvision's classification reference trains with."""
    steps = [T.RandomResizedCrop(48), T.RandomHorizontalFlip(), getattr(T, policy)(), T.PILToTensor()]
    steps += [T.ConvertImageDtype(torch.float32), T.Normalize(MEAN, STD), T.RandomErasing(0.5)]
    options: dict[str, Any] = {"batch_size": 8, "shuffle": True, "seed": 5}
    dataset = EncodedImages(pictures(40), range(40), T.Compose(steps))
    loader = DataLoader(dataset, num_workers=2, **options)
    assert_native(loader)
    assert loader.verify(5).batches == 5
    if policy == "RandAugment":
        pytest.importorskip("headrace._gpu")
        assert_same(DataLoader(dataset, num_workers=2, device="emulated", **options), list(loader))


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("name", OURS)
def test_ours(name: str, device: str | None) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 9, "num_workers": 2}
    dataset = EncodedImages(pictures(96), range(96), H.Compose(OURS[name]))
    loader = DataLoader(dataset, device=device, **options)
    if device is None:
        assert loader.native
        assert loader.verify(6).batches == 6
    else:
        assert_same(loader, list(DataLoader(dataset, **options)))


def test_gray_arrays() -> None:
    digits = torch.randint(0, 256, (60, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    steps = [H.RandAugment(2, 12), H.AutoAugment(H.AutoAugmentPolicy.SVHN), H.RandomAdjustSharpness(2), H.ToTensor()]
    loader = DataLoader(ImageArray(digits, range(60), H.Compose(steps)), 10, seed=2)
    assert_native(loader)
    assert loader.verify(6).batches == 6


def test_sizes_that_vary_leave_the_policy_in_python() -> None:
    dataset = EncodedImages(pictures(24), range(24), H.Compose([H.RandAugment(), H.RandomResizedCrop(32), *TENSOR]))
    loader = DataLoader(dataset, 8, seed=2, num_workers=2)
    line = next(line for line in loader.explain().lines if "RandAugment" in line.part)
    assert line.runs == "Python" and "the size of the image is not known" in line.how
    assert loader.verify(3).batches == 3
