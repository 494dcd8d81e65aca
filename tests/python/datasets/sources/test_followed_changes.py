"""Changes between epochs take effect in the next one: tensors inside transforms, the folder's loader, torch's dtype."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._lowering.transform_library import attributes
from support import assert_same, pictures, write_folder


@pytest.mark.parametrize("home", ["ours", "v1", "v2"])
def test_a_tensor_changed_by_less_than_its_repr_shows(home: str, torchvision: ModuleType) -> None:
    M = {"ours": T, "v1": torchvision.transforms, "v2": torchvision.transforms.v2}[home]
    normalize = M.Normalize(torch.full((3,), 0.5), torch.full((3,), 0.25))
    if home != "v1":  # v1 keeps the tensor that it was given
        normalize.mean = torch.full((3,), 0.5)
    dataset = EncodedImages(pictures(4), None, M.Compose([M.Resize((8, 8)), T.ToTensor(), normalize]))
    loader = DataLoader(dataset, 4)
    before = next(iter(loader))
    normalize.mean += 3e-5
    assert_same(loader, list(TorchDataLoader(dataset, 4)))
    assert loader.native and not torch.equal(before, next(iter(loader)))


def test_another_loader_of_files(torchvision: ModuleType, tmp_path: Path) -> None:
    folder = torchvision.datasets.ImageFolder(write_folder(tmp_path), T.Compose([T.Resize((8, 8)), T.ToTensor()]))
    loader = DataLoader(folder, 4)
    next(iter(loader))
    original = folder.loader
    folder.loader = lambda path: original(path).rotate(180)
    assert_same(loader, list(TorchDataLoader(folder, 4)))
    assert not loader.native


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_another_default_dtype(dtype: torch.dtype, torchvision: ModuleType) -> None:
    transforms = torchvision.transforms
    dataset = EncodedImages(pictures(4), None, transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()]))
    loader = DataLoader(dataset, 4)
    next(iter(loader))
    torch.set_default_dtype(dtype)
    try:
        assert next(iter(loader)).dtype == dtype
        assert_same(loader, list(TorchDataLoader(dataset, 4)))
    finally:
        torch.set_default_dtype(torch.float32)


class Holds:
    def __init__(self, value: object) -> None:
        self.value = value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.tensor(0.5), torch.tensor(0.5 + 1e-7)),
        (torch.zeros(3), torch.zeros(3, dtype=torch.float64)),
        (torch.zeros(2, 3), torch.zeros(3, 2)),
        (torch.zeros(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16)),
        (torch.arange(6.0).reshape(2, 3).T, torch.arange(6.0).reshape(3, 2)),
        ([{"a": Holds(1)}], [{"a": Holds(2)}]),
    ],
)
def test_what_is_in_an_object(one: torch.Tensor | list[Any], other: torch.Tensor | list[Any]) -> None:
    assert attributes(Holds(one)) == attributes(Holds(one)) != attributes(Holds(other))


def test_an_object_that_holds_itself() -> None:
    ring = Holds(None)
    ring.value = [ring, 3]
    assert "3" in attributes(ring)
