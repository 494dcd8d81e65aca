"""torchvision's MixUp and CutMix in torch's workers: its own results, strides and errors, and untouched inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, default_collate

import headrace
from headrace._loading.mixup.mixes_in_workers import make_replacements
from torchvision_shim import import_torchvision

import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402

CLASSES = 5
KINDS = pytest.mark.parametrize("kind", [v2.MixUp, v2.CutMix])
SHAPES = [(4, 3, 9, 11), (1, 3, 9, 11), (5, 1, 8, 8), (2, 4, 1, 7), (3, 3, 1, 1), (2, 1, 1, 1), (0, 3, 4, 4), (4, 3, 5)]


class Memory:
    """Makes memory, and counts how often."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        self.made += 1
        return torch.full(batch.shape, -7.0, dtype=batch.dtype)


def outcome(mix: Any, images: Any, labels: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    try:
        return mix(images, labels)
    except Exception as error:
        return type(error), str(error)


def check(mix: Any, images: Any, labels: Any, *, ours: bool) -> None:
    """Compares ten results, with as many seeds."""
    for seed in range(10):
        expected = outcome(mix, images.clone(), labels, seed)
        before, memory = images.clone(), Memory()
        steps = make_replacements(memory)
        assert steps.replace()
        try:
            found = outcome(mix, images, labels, seed)
        finally:
            steps.put_back()
        assert type(found) is type(expected)
        if isinstance(expected[0], type):
            assert found == expected
        else:
            for a, b in zip(found, expected, strict=True):
                assert type(a) is type(b)
                assert (a.stride(), a.dtype) == (b.stride(), b.dtype)
                assert torch.equal(a, b)
            assert memory.made == ours
        assert torch.equal(images, before)


@KINDS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_dense_batches_are_mixed_as_torchvision_mixes_them(kind: Any, dtype: torch.dtype) -> None:
    for shape in SHAPES:
        images, labels = torch.randn(shape).to(dtype), torch.arange(shape[0]) % CLASSES
        check(kind(num_classes=CLASSES), images, labels, ours=0 not in shape)


@KINDS
def test_all_else_is_torchvisions(kind: Any) -> None:
    labels, mix = torch.arange(4), kind(num_classes=CLASSES)
    images = torch.randn(4, 3, 8, 10)
    check(mix, images.contiguous(memory_format=torch.channels_last), labels, ours=False)
    check(mix, images[..., ::2], labels, ours=False)
    check(mix, (255 * images).to(torch.uint8), labels, ours=False)
    check(mix, tv_tensors.Image(images), labels, ours=False)
    check(mix, images[:3], labels, ours=False)  # an error


@KINDS
def test_other_labels_and_several_batches(kind: Any) -> None:
    images = torch.randn(4, 3, 8, 10)
    check(kind(), images, torch.rand(4, CLASSES), ours=True)
    check(v2.RandomChoice([kind(num_classes=CLASSES)]), images, torch.arange(4), ours=True)


def test_what_was_there_is_put_back() -> None:
    plain = v2.MixUp.transform, v2.CutMix.transform
    steps = make_replacements(lambda batch: None)
    assert steps.replace()
    assert v2.MixUp.transform is not plain[0]
    check(v2.MixUp(num_classes=CLASSES), torch.randn(2, 3, 4, 4), torch.arange(2), ours=True)
    steps.put_back()
    assert (v2.MixUp.transform, v2.CutMix.transform) == plain


class Noise(Dataset[Any]):
    def __len__(self) -> int:
        return 70

    def __getitem__(self, index: int) -> Any:
        return torch.rand(3, 80, 90, generator=torch.Generator().manual_seed(index)), index


class Mixing:
    """Mixes batches, and keeps the sums of the images that it has mixed: they must not change."""

    def __init__(self) -> None:
        self.mix = v2.RandomChoice([v2.MixUp(num_classes=CLASSES), v2.CutMix(num_classes=CLASSES)])
        self.kept: list[Any] = []

    def __call__(self, samples: list[Any]) -> Any:
        images, labels = default_collate(samples)
        mixed = self.mix(images, labels % CLASSES)
        self.kept = [*self.kept, (images, images.sum())][-2:]
        return *mixed, torch.stack([image.sum() == total for image, total in self.kept])


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_deliver_torchs_batches(workers: int) -> None:
    loaders = [
        kind(Noise(), 8, num_workers=workers, persistent_workers=True, collate_fn=Mixing())
        for kind in (TorchDataLoader, headrace.DataLoader)
    ]
    for seed in range(3):
        epochs = []
        for loader in loaders:
            torch.manual_seed(seed)
            epochs.append([[one.clone() for one in batch] for batch in loader])
        for theirs, ours in zip(*epochs, strict=True):
            assert all(map(torch.equal, theirs, ours))
            assert ours[2].all()
        assert torch.equal(epochs[0][-1][0], ours[0])
