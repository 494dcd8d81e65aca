"""What a loader that torch serves says of its first images: nothing where they are native, else what to change."""

from __future__ import annotations

import copy
import logging
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset

import headrace
from headrace import DataLoader
from headrace._loading.fallback import opened_images
from headrace._loading.fallback.opened_images import find_opener


@pytest.fixture(autouse=True)
def _unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_images, "_warned", False)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = []
    for number in range(12):
        made.append(tmp_path / f"{number}.jpg")
        Image.effect_noise((30, 20), 40).convert("RGB").save(made[-1])
    return made


class Opened(Dataset[torch.Tensor]):
    """Opens its files with Pillow."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.asarray(Image.open(self.files[index]).convert("RGB")).copy())


class ByArrays(Opened):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((1 << 16,), index)


class Streamed(IterableDataset[torch.Tensor]):
    """Yields the same samples, in an order of its own."""

    def __init__(self, files: list[Path]) -> None:
        self.opened = Opened(files)

    def __iter__(self) -> Iterator[torch.Tensor]:
        return (self.opened[index] for index in range(len(self.opened)))


def said(loader: DataLoader[Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        for _ in loader:
            pass
    return [one for one in record if issubclass(one.category, headrace.PerformanceWarning)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_that_opens_images_with_pillow_causes_one_info_line(
    files: list[Path], workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    loader = DataLoader(Opened(files), 2, num_workers=workers)
    assert loader.route == "deferred"
    with caplog.at_level(logging.INFO, "headrace"):
        assert said(loader) == []
    lines = [one.getMessage() for one in caplog.records if "native pixels in torch's workers" in one.getMessage()]
    assert len(lines) == 1 and "12 of 12 images natively" in lines[0] and "headrace_source" in lines[0]


def test_a_stream_is_not_advised_to_have_a_method_of_datasets(
    files: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "headrace"):
        assert said(DataLoader(Streamed(files), 4)) == []
    (line,) = [one.getMessage() for one in caplog.records if "native pixels in torch's workers" in one.getMessage()]
    assert "12 of 12 images natively; loader.explain() says which datasets" in line and "headrace_source" not in line


def test_a_loader_is_judged_once(files: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    loader = DataLoader(Opened(files), 1)
    with caplog.at_level(logging.INFO, "headrace"):
        for _ in range(3):
            assert said(loader) == []
    lines = [one.getMessage() for one in caplog.records]
    assert sum("native pixels in torch's workers" in one for one in lines) == 1
    assert sum("delivers this epoch" in one for one in lines) == 1
    copied = copy.deepcopy(loader)
    assert len(list(copied)) == len(files)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_that_opens_none_is_warned_of_at_the_programs_line(files: list[Path], workers: int) -> None:
    loader = DataLoader(ByArrays(files), 1, num_workers=workers)
    (warning,) = said(loader)
    assert "the first 8 batches opened no image with a function that headrace knows" in str(warning.message)
    assert warning.filename == __file__
    assert said(loader) == []  # once


def test_the_remedy_names_the_function(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    fake = types.ModuleType("cv2")
    fake.imread = lambda path: np.asarray(Image.open(path).convert("L"))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cv2", fake)

    def opened_by(path: Path) -> object:
        import cv2

        return cv2.imread(str(path))

    class Nested(Opened):
        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.tensor([len(str(opened_by(self.files[0]))) for _ in range(index)])

    nested: list[Dataset[torch.Tensor]] = [
        Nested(files),
        Subset(Nested(files), [0]),
        ConcatDataset([Opened(files), Nested(files)]),
    ]
    for one in nested:
        opener = find_opener(one)
        assert opener is not None and opener.name == "cv2.imread" and "write cv2.imread" in opener.remedy


def test_names_of_other_modules_are_no_doors(files: list[Path]) -> None:
    import json

    class Loading(Opened):
        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.from_numpy(np.asarray(json.load(self.files[index].open())))

    assert find_opener(Loading(files)) is None

    class Loader(Opened):
        def __init__(self, files: list[Path]) -> None:
            super().__init__(files)
            self.load = lambda path: np.load(path)

    opener = find_opener(Loader(files))
    assert opener is not None and opener.name == "numpy.load" and "headrace.Columns" in opener.remedy


def test_few_native_images_are_warned_of_at_the_end_of_a_short_epoch(tmp_path: Path) -> None:
    files = []
    for number in range(4):
        files.append(tmp_path / f"{number}.bmp")
        Image.effect_noise((30, 20), 40).convert("RGB").save(files[-1])
    (warning,) = said(DataLoader(Opened(files), 4))
    assert "few images of the first batch got native pixels: 0 of 4 images natively; by Pillow: 4 BMP" in str(
        warning.message
    )


def test_a_loader_without_deferred_images_is_warned_of_when_it_begins(files: list[Path]) -> None:
    loader = DataLoader(Opened(files), 4, deferred_images=False)
    with pytest.warns(headrace.PerformanceWarning, match="delivers these batches, at its own speed") as record:
        iter(loader)
    assert record[0].filename == __file__


def test_all_exceptions_have_one_base_class(files: list[Path]) -> None:
    for kind in (headrace.SampleError, headrace.LoweringError, headrace.VerificationError):
        assert issubclass(kind, headrace.HeadraceError)
    files[1].write_bytes(b"no image")
    steps = headrace.transforms.Compose([headrace.transforms.Resize((9, 9)), headrace.transforms.ToTensor()])
    loader = DataLoader(headrace.ImageFiles(files, transform=steps), 4)
    with pytest.raises(headrace.HeadraceError) as raised:
        next(iter(loader))
    assert isinstance(raised.value, headrace.SampleError) and isinstance(raised.value, OSError)
