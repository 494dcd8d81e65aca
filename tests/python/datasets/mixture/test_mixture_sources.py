"""Mixtures of every kind of source: batches equal torch's loader with the same sampler."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import Columns, DataLoader, Fields, ImageArray, ImageFolder, Mixture, TarShards
from headrace import transforms as T
from headrace.sampler import MixtureSampler
from support import assert_same, blobs, evaluation, pictures, write_folder

SMALL, LARGE = evaluation(20, 16), evaluation(26, 16)


def compared(mixture: Mixture, workers: int = 2, **options: Any) -> DataLoader[Any]:
    """A loader of a mixture, two of whose epochs are torch's."""
    sampler = MixtureSampler(mixture, 4)
    ours: DataLoader[Any] = DataLoader(mixture, 7, True, seed=4, num_workers=workers, **options)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert_same(ours, list(TorchDataLoader(mixture, 7, sampler=sampler)))
    return ours


def shard(path: Path, count: int) -> str:
    with tarfile.open(path, "w") as archive:
        for n, data in enumerate(pictures(count)):
            for ending, content in (("jpg", data), ("cls", b"%d" % n)):
                member = tarfile.TarInfo(f"{n:03}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return str(path)


def test_images_of_files_shards_memory_and_arrays(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 24, 24, 3), np.uint8)
    parts: dict[str, Any] = {
        "folder": (ImageFolder(write_folder(tmp_path / "images", 9), transform=SMALL), 3),
        "shards": (TarShards([shard(tmp_path / "a.tar", 8)], transform=LARGE), 2),
        "memory": (Subset(blobs(12, SMALL), [3, 1, 11]), 1),
        "array": (ImageArray(pixels, [7, 6, 5, 4, 3], transform=LARGE), 1),
        "joined": (ConcatDataset([blobs(2, LARGE), blobs(3, SMALL)]), None),
    }
    loader = compared(Mixture(parts, epoch_size=80))
    assert loader.native and sum(loader.stats().mixture.values()) == 80


def test_one_transform_on_a_device() -> None:
    parts: dict[str, Any] = {"a": (blobs(9, SMALL), 2), "b": (blobs(4, SMALL), 1)}
    loader = DataLoader(Mixture(parts), 5, True, seed=1, num_workers=1, device="emulated")
    assert loader.native and loader.verify(2).samples == 10
    assert_same(loader, list(loader.reference()))


def test_dicts_of_columns_and_of_fields() -> None:
    columns: dict[str, Any] = {
        str(n): (Columns({"tokens": np.full((n, 4), n), "label": np.arange(n)}), weight)
        for n, weight in ((9, 1), (5, 2))
    }
    assert compared(Mixture(columns)).native
    fields: dict[str, Any] = {
        str(n): (Fields({"image": blobs(n, SMALL), "name": [str(n)] * n}), weight) for n, weight in ((9, 1), (5, 2))
    }
    assert compared(Mixture(fields), workers=0).route == "deferred"


class Opened(Dataset[Any]):
    """Images that a program opens itself."""

    def __init__(self, count: int, transform: Any) -> None:
        self._images, self._transform = blobs(count), transform

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> Any:
        return self._transform(self._images.image(index)), index


@pytest.mark.parametrize("workers", [0, 2])
def test_datasets_of_ones_own(workers: int) -> None:
    own: Any = Opened(5, T.Compose([T.Resize((16, 16)), T.ToTensor()]))
    parts: dict[str, Any] = {"own": (own, 1), "ours": (blobs(6, SMALL), 2)}
    assert compared(Mixture(parts), workers).route == "deferred"
    numbers: dict[str, Any] = {"a": (TensorDataset(torch.arange(9)), 1), "b": (TensorDataset(-torch.arange(5)), 1)}
    assert compared(Mixture(numbers), workers).route == "deferred"
