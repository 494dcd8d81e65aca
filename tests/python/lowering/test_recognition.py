"""The datasets that the loader recognises: torchvision's folders, and subclasses that override only what it calls."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from headrace import DataLoader, EncodedImages, ImageFolder
from headrace import transforms as T
from headrace.datasets.sources import BlobDataset, NotNative, as_source
from support import TENSOR, assert_same, pictures, train, write_folder

TINY = T.Compose([T.Resize((8, 8)), *TENSOR])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


def test_torchvisions_folder_gives_what_ours_gives(torchvision: ModuleType, root: Path) -> None:
    theirs, ours = (
        DataLoader(kind(root, train(24), lambda label: label + 10), 5, True, seed=1, num_workers=1)
        for kind in (torchvision.datasets.ImageFolder, ImageFolder)
    )
    expected = list(theirs.reference())
    assert_same(theirs, expected)
    assert_same(ours, expected)


def test_its_transforms_can_be_exchanged(torchvision: ModuleType, root: Path) -> None:
    folder = torchvision.datasets.ImageFolder(root, train(24))
    loader = DataLoader(folder, 24)
    folder.transform, folder.target_transform = TINY, lambda label: label - 5
    images, labels = next(iter(loader))
    assert images.shape[-1] == 8 and sorted(set(labels.tolist())) == [-5, -4, -3]
    folder.transform = T.ToTensor()
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(loader)
    assert not loader.native and "cannot be stacked" in str(loader.explain())


def test_a_subclass_that_only_finds_its_files_otherwise(torchvision: ModuleType, root: Path) -> None:
    class Reversed(torchvision.datasets.ImageFolder):  # type: ignore[name-defined]
        def find_classes(self, directory: Any) -> tuple[list[str], dict[str, int]]:
            classes, _ = super().find_classes(directory)
            return classes[::-1], {name: i for i, name in enumerate(classes[::-1])}

    loader: DataLoader = DataLoader(Reversed(root, TINY), 5)
    assert_same(loader, loader.reference())
    assert next(iter(loader))[1].tolist() == [2] * 5
    assert loader._source.location(0).endswith("class_0/0000.jpg")


def test_what_overrides_what_would_not_be_called_is_handed_to_torch(torchvision: ModuleType, root: Path) -> None:
    class Indexed(torchvision.datasets.ImageFolder):  # type: ignore[name-defined]
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index), index

    class Ours(ImageFolder):
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index), index

    class Batched(EncodedImages):
        def __getitems__(self, indices: list[int]) -> Any:
            return [self[i] for i in indices]

    class Decrypted(ImageFolder):
        def read(self, index: int) -> bytes:
            return super().read(index)[::-1]

    class Relabelled(ImageFolder):
        def target(self, index: int) -> int:
            return 7

    for dataset, words in (
        (Indexed(root, TINY), "Indexed overrides __getitem__, which .* put that work into transform"),
        (Ours(root, TINY), "Ours overrides __getitem__"),
        (Batched(pictures(), None, TINY), "Batched overrides __getitems__"),
        (Decrypted(root, TINY), "Decrypted overrides read, which .*; override blob_table with it"),
        (Relabelled(root, TINY), "Relabelled overrides target, .*; override targets_of with it"),
    ):
        with pytest.raises(NotNative, match=words):
            as_source(dataset)
        loader = DataLoader(dataset, seed=1)
        assert not loader.native and len(loader) == len(dataset)
        assert re.search(words, str(loader.explain()).splitlines()[0])


def test_a_dataset_of_ones_own_that_says_both(root: Path) -> None:
    class Decrypted(EncodedImages):
        def read(self, index: int) -> bytes:
            return super().read(index)[::-1]

        def blob_table(self) -> Any:
            return EncodedImages([self.read(i) for i in range(len(self))]).blob_table()

    loader = DataLoader(Decrypted([picture[::-1] for picture in pictures()], range(24), TINY), 5)
    assert_same(loader, loader.reference())


def test_other_loaders_and_backends_are_handed_to_torch(torchvision: ModuleType, root: Path) -> None:
    folder = torchvision.datasets.ImageFolder
    with pytest.raises(NotNative, match=r"opens files its own way; .* leave loader out"):
        as_source(folder(root, TINY, loader=lambda path: torch.zeros(3)))
    lengths = folder(root, None, loader=lambda path: torch.full((1,), len(path)))
    own: DataLoader = DataLoader(lengths, 24)
    assert_same(own, [[torch.full((24, 1), len(lengths.samples[0][0])), torch.arange(3).repeat_interleave(8)]])
    pil = DataLoader(folder(root, TINY, loader=torchvision.datasets.folder.pil_loader), 24)
    assert_same(pil, pil.reference())
    torchvision.set_image_backend("accimage")
    try:
        with pytest.raises(NotNative, match=r'call torchvision.set_image_backend\("PIL"\)'):
            as_source(folder(root, TINY))
    finally:
        torchvision.set_image_backend("PIL")


@pytest.mark.parametrize(
    "dataset",
    [
        [1, 2, 3],
        None,
        torch.utils.data.TensorDataset(torch.zeros(3)),
        torch.utils.data.ChainDataset([]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_not_known_is_named(dataset: Any) -> None:
    with pytest.raises(
        NotNative, match=rf"does not know [\w.]+\.{type(dataset).__qualname__}; it reads headrace.ImageFolder, "
    ):
        as_source(dataset)


def test_the_bare_base_class() -> None:
    with pytest.raises(NotImplementedError):
        len(BlobDataset(None, None, None))
