"""Loaders that torch delivered for while a function was replaced: the epochs go on where torch's would."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from headrace import DataLoader
from headrace import transforms as ours


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("images")
    paths = [folder / f"{number}.jpg" for number in range(8)]
    for number, path in enumerate(paths):
        Image.new("RGB", (9, 7), (number, 2 * number, 3 * number)).save(path)
    return paths


def replaced() -> Any:
    return mock.patch.object(Image, "open", side_effect=lambda *_: Image.new("RGB", (9, 7), (200, 1, 1)))


def dataset(files: list[Path]) -> Any:
    return headrace.ImageFiles(
        files, labels=list(range(8)), transform=ours.Compose([ours.Resize((6, 6)), ours.ToTensor()])
    )


def labels(batches: Any) -> list[list[int]]:
    return [batch[1].tolist() for batch in batches]


def epochs(cls: Any, data: Any, **options: Any) -> list[Any]:
    """Five epochs; a function is replaced during the second and the third."""
    generator = torch.Generator().manual_seed(5)
    loader = cls(data, batch_size=3, shuffle=True, generator=generator, **options)
    made = [list(loader)]
    with replaced():
        made += [list(loader), list(loader)]
    return [*made, list(loader), list(loader)]


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}], ids=str)
def test_five_epochs_are_torchs(files: list[Path], options: dict[str, Any]) -> None:
    expected, made = (epochs(cls, dataset(files), **options) for cls in (TorchDataLoader, DataLoader))
    for one, other in zip(expected, made, strict=True):
        assert labels(one) == labels(other)
        assert all(torch.equal(a[0], b[0]) for a, b in zip(one, other, strict=True))


def test_workers_that_were_forked_keep_what_they_have(files: list[Path]) -> None:
    with replaced():
        loader = DataLoader(dataset(files), num_workers=1, persistent_workers=True)
        list(loader)
    list(loader)
    assert not loader.native
    loader.close()  # ends the workers
    list(loader)
    assert loader.native


def test_epochs_are_counted_on(files: list[Path]) -> None:
    with replaced():
        loader = DataLoader(dataset(files), batch_size=2, shuffle=True, seed=3)
        made = [labels(loader)]
    assert loader.upcoming_epoch == 1
    made += [labels(loader), labels(loader)]
    assert loader.native and loader.upcoming_epoch == 3
    native = DataLoader(dataset(files), batch_size=2, shuffle=True, seed=3)
    assert made == [labels(native) for _ in range(3)]


def test_an_epoch_under_way_ends_with_torch(files: list[Path]) -> None:
    loader = DataLoader(dataset(files), batch_size=2, seed=3)
    with replaced():
        batches = iter(loader)
        next(batches)
    state = loader.state_dict()
    assert not loader.native
    loader.load_state_dict(state)
    assert len(labels(loader)) == 3  # torch resumes what it has begun
    assert not loader.native
    assert len(list(batches)) == 3
    assert len(labels(loader)) == 4
    assert loader.native


def test_arguments_of_the_native_path(files: list[Path]) -> None:
    loader = DataLoader(dataset(files), dtype=torch.float16)
    with replaced(), pytest.raises(TypeError, match=r"dtype=.*PIL.Image.open was replaced by an object of"):
        iter(loader)
    assert next(iter(loader))[0].dtype == torch.float16


def test_a_subclass_that_overrides_stays_with_torch(files: list[Path]) -> None:
    class Mine(headrace.ImageFiles):
        def image(self, index: int) -> Any:
            return super().image(index)

    loader = DataLoader(Mine(files, transform=ours.ToTensor()))
    for _ in range(2):
        list(loader)
        assert not loader.native
    assert loader.route == "deferred"
