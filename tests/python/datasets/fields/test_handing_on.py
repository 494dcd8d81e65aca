"""Samples that torch's DataLoader delivers, and changes of a dataset between epochs."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from stacks import COUNT, assert_equal, encoded, everything, plain
from torch.utils.data import ConcatDataset, StackDataset, Subset, TensorDataset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages, Fields
from headrace import transforms as T
from support import same, write_folder

UNKNOWN = TensorDataset(torch.arange(COUNT))
BY_RATIO = T.Compose([T.ByAspectRatio({size: T.Resize(size) for size in ((8, 8), (8, 16))}), T.ToTensor()])
INT64 = T.Compose([T.Resize((8, 8)), T.PILToTensor(), T.ToDtype(torch.int64)])
NOUGHTS: Any = [0] * COUNT  # no Dataset by its type
HANDED_ON = {
    "a dataset": (Fields({"image": UNKNOWN}), "field 'image': headrace does not know .*TensorDataset"),
    "a stack's dataset": (StackDataset(x=NOUGHTS, y=UNKNOWN), "field 'y': headrace does not know"),
    "no common size": (
        Fields({"image": EncodedImages(encoded().images, transform=T.ToTensor())}),
        "field 'image': the images' sizes vary",
    ),
    "int64": (
        Fields({"mask": EncodedImages(encoded().gray, transform=INT64, mode="L")}),
        "field 'mask': the transforms make",
    ),
    "several sizes": (
        Fields({"image": EncodedImages(encoded().images, transform=BY_RATIO)}),
        "field 'image': ByAspectRatio gives",
    ),
}


@pytest.mark.parametrize("case", HANDED_ON)
def test_what_torch_delivers(case: str) -> None:
    data, words = HANDED_ON[case]
    loader = DataLoader(data, 1, num_workers=0)
    assert not loader.native
    with pytest.raises(TypeError, match=words):
        DataLoader(data, 1, memory_format=torch.channels_last)
    assert words.partition(":")[0] in str(loader.explain())
    assert_equal(loader, TorchDataLoader(data, 1))


def a_list(samples: list[Any]) -> list[Any]:
    """Draws from a generator of the process, so that torch's workers have to call it."""
    random.random()
    return samples


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_delivers_the_same_samples_from_deferred_images(workers: int) -> None:
    def batches(kind: Any) -> list[Any]:
        torch.manual_seed(3)
        random.seed(3)
        return list(kind(everything(), 5, shuffle=True, num_workers=workers, collate_fn=a_list))

    loader = DataLoader(everything(), 5, collate_fn=a_list)
    assert loader.route == "deferred" and "collate_fn" in str(loader.explain())
    assert same(batches(DataLoader), batches(TorchDataLoader))


class Changed(Fields):
    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": super().__getitem__(index)["x"] + 1}


class ChangedStack(StackDataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return {"x": super().__getitem__(index)["x"] + 1}

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


NINE: Any = [*range(9)]


@pytest.mark.parametrize("data", [Changed({"x": [*range(9)]}), ChangedStack(x=NINE)], ids=["samples", "stack"])
def test_subclasses_that_override_are_torchs(data: Changed | ChangedStack) -> None:
    loader = DataLoader(data, 4)
    assert not loader.native and "overrides __getitem__" in str(loader.explain())
    assert_equal(loader, TorchDataLoader(data, 4))


class Odd(list[int]):
    def __getitem__(self, index: Any) -> Any:
        return -super().__getitem__(index)


def test_lists_that_override_are_torchs() -> None:
    data = Fields({"x": Odd(range(9))})
    loader = DataLoader(data, 4)
    assert not loader.native and "field 'x': Odd overrides __getitem__" in str(loader.explain())
    assert_equal(loader, TorchDataLoader(data, 4))


def test_a_concatenation_is_torchs() -> None:
    data: ConcatDataset[Any] = ConcatDataset([Fields({"x": [1, 2]}), Fields({"x": [3]})])
    loader = DataLoader(data, 2)
    assert not loader.native
    assert_equal(loader, TorchDataLoader(data, 2))


def test_changes_take_effect_with_the_next_epoch() -> None:
    images = EncodedImages(encoded().images, transform=plain())
    values = [*range(COUNT)]
    data = Fields({"image": images, "x": values})
    loader = DataLoader(data, 6, num_workers=1)
    assert next(iter(loader))["image"].shape == (6, 3, 32, 32)
    images.transform = plain(20)
    assert next(iter(loader))["image"].shape == (6, 3, 20, 20)
    assert_equal(loader, TorchDataLoader(data, 6))
    data = Fields({"x": values})
    loader = DataLoader(data, 6)
    values.append(0)
    assert_equal(loader, TorchDataLoader(data, 6))


def test_persistent_workers_keep_the_dataset_of_the_first_epoch() -> None:
    images = EncodedImages(encoded().images, transform=plain())
    values = [*range(COUNT)]
    loaders: list[Any] = [
        kind(Fields({"image": images, "x": values}), 6, num_workers=1, persistent_workers=True)
        for kind in (DataLoader, TorchDataLoader)
    ]
    first = [next(iter(loader)) for loader in loaders]
    engine = loaders[0]._engine
    images.transform, values[0] = plain(20), 50
    assert_equal([next(iter(loaders[0]))], [first[1]])
    assert_equal([next(iter(loaders[1]))], [first[0]])
    assert loaders[0]._engine is engine
    loaders[0].close()
    assert next(iter(loaders[0]))["x"][0] == 50


def test_a_field_that_stops_being_native_is_handed_to_torch() -> None:
    images = EncodedImages(encoded().images, transform=plain())
    loader = DataLoader(Fields({"image": images}), 1)
    assert loader.native
    images.transform = T.ToTensor()
    assert next(iter(loader))["image"].shape[0] == 1 and not loader.native


def test_torchvisions_datasets_are_fields(torchvision: ModuleType, tmp_path: Path) -> None:
    data = torchvision.datasets.ImageFolder(write_folder(tmp_path), plain())
    samples = Fields({"image": data, "again": Subset(data, range(len(data)))}, T.CenterCrop(40))
    loader = DataLoader(samples, 5, num_workers=1)
    assert loader.native
    assert_equal(loader, TorchDataLoader(samples, 5))
    data.transform = plain(16)
    assert_equal(loader, TorchDataLoader(samples, 5))
    data.samples = data.samples[::-1]
    assert_equal(loader, TorchDataLoader(samples, 5))
    assert loader.native


def test_copies_of_a_loader() -> None:
    loader = DataLoader(everything(), 5, True, seed=2, num_workers=1)
    twin = pickle.loads(pickle.dumps(loader))
    assert twin.native
    assert_equal(loader, list(twin))
