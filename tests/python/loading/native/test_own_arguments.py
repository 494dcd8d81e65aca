"""headrace's own arguments cannot be changed after the loader is made; the class is generic, as torch's is."""

from __future__ import annotations

import copy
import pickle
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from support import TENSOR, assert_same, blobs

OWN: dict[str, Any] = {
    "seed": 7,
    "device": "cpu",
    "decoder": "cpu",
    "deterministic": True,
    "dtype": torch.float16,
    "memory_format": torch.channels_last,
    "on_error": "ignore",
    "max_errors": 3,
    "distributed": True,
    "out_transform": print,
    "cpu_affinity": [0],
    "prefetch_bytes": 10**6,
}


@pytest.mark.parametrize("name", OWN)
def test_an_argument_is_not_set_later(name: str) -> None:
    """Otherwise an epoch's seed could differ from that of its state, and an unknown policy would act as a known one."""
    loader = DataLoader(blobs(4), seed=1)
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
        setattr(loader, name, OWN[name])
    assert loader.state_dict()["seed"] == loader.seed == 1


def test_a_subclass_may_set_its_own_attributes() -> None:
    class Mine(DataLoader):
        def __init__(self, *args: Any, **options: Any) -> None:
            self.tag = "before"
            super().__init__(*args, **options)
            self.tag = "behind"

    assert Mine(blobs(4), 2).tag == "behind"


def test_the_class_is_generic() -> None:
    for kind in (TorchDataLoader, DataLoader):
        alias: Any = kind[tuple[torch.Tensor, torch.Tensor]]
        assert typing.get_origin(alias) is kind
        assert len(alias(blobs(4, TENSOR[0]), batch_size=2)) == 2

    def train(loader: DataLoader[tuple[torch.Tensor, torch.Tensor]]) -> None: ...

    assert typing.get_type_hints(train)["loader"] == DataLoader[tuple[torch.Tensor, torch.Tensor]]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_loader_is_pickled_by_any_protocol(protocol: int) -> None:
    loader = DataLoader(blobs(8), 4, seed=3, memory_format=torch.channels_last, dtype=torch.float16)
    copied = pickle.loads(pickle.dumps(loader, protocol))
    assert copied.memory_format is torch.channels_last
    assert_same(copied, list(DataLoader(blobs(8), 4, seed=3, memory_format=torch.channels_last, dtype=torch.float16)))


def test_a_loader_is_saved_by_torch(tmp_path: Path) -> None:
    torch.save(DataLoader(blobs(8), 4, seed=3), tmp_path / "loader.pt")
    copied = torch.load(tmp_path / "loader.pt", weights_only=False)
    assert_same(copied, list(DataLoader(blobs(8), 4, seed=3)))
    other = copy.copy(copied)
    assert other.memory_format is torch.contiguous_format


def test_a_single_sample_is_of_the_class_that_the_transforms_give(torchvision: ModuleType) -> None:
    v2 = torchvision.transforms.v2
    for steps in (
        [v2.Resize((8, 8)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)],
        [v2.Resize((8, 8)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), lambda image: image * 2],
        [v2.Resize((8, 8)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()],
    ):
        dataset = blobs(4, v2.Compose(steps))
        for batch_size in (None, 2):
            ours, theirs = (next(iter(kind(dataset, batch_size)))[0] for kind in (DataLoader, TorchDataLoader))
            assert DataLoader(dataset, batch_size).native
            assert type(ours) is type(theirs) and torch.equal(ours, theirs)
