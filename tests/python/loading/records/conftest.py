"""Files and recipes of the tests of records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from record_datasets import write_photographs
from record_loaders import EDGE, MEAN, STD

from headrace._loading.doors.type_checks import checks
from headrace._loading.records import record_makers


@pytest.fixture(autouse=True)
def _tests_are_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests in this process compare types with `is`, where tensors are not deferred."""
    monkeypatch.setattr(checks, "look", lambda: None)


@pytest.fixture
def idle_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """This rank has eight cores, so that a few workers leave most of them idle."""
    monkeypatch.setattr(record_makers, "cores_of_rank", lambda: (8.0, "8 cores"))


@pytest.fixture
def busy_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """This rank has one core."""
    monkeypatch.setattr(record_makers, "cores_of_rank", lambda: (1.0, "1 core"))


@pytest.fixture(scope="session")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_photographs(tmp_path_factory.mktemp("records"))


@pytest.fixture
def train(torchvision: Any) -> Any:
    """The training recipe of torchvision v1: ToTensor and Normalize are one table."""
    from torchvision import transforms

    steps = [transforms.RandomResizedCrop(EDGE), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4)]
    return transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])


@pytest.fixture
def train_v2(torchvision: Any) -> Any:
    """The training recipe on tensors."""
    from torchvision.transforms import v2

    steps = [v2.ToImage(), v2.RandomResizedCrop(EDGE, antialias=True), v2.RandomHorizontalFlip()]
    return v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
