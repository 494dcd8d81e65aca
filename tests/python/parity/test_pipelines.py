"""Pipelines as people write them deliver the same with headrace's DataLoader as with torch's."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from pipelines import augment, batching, damage, own, pairs, reading, streams, views
from pipelines.alike import difference
from pipelines.material import Material
from pipelines.registry import PIPELINES, Pipeline
from pipelines.running import EPOCHS, observe
from torch.utils.data import DataLoader as TorchDataLoader
from torchvision import tv_tensors

from headrace import DataLoader
from support import hard_files, silent_pillow

pytestmark = pytest.mark.processes

KINDS = augment, batching, damage, own, pairs, reading, streams, views


@pytest.fixture(scope="session")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    return Material(tmp_path_factory.mktemp("material")).write()


@pytest.fixture(scope="session")
def odd_files(hard_dev: Path) -> Pipeline:
    """A pipeline over a part of hard_dev."""
    small = sorted(path for path in hard_files(hard_dev) if path.stat().st_size < 60_000)
    assert len(small) > 100
    return damage.over_files(small[::3])


def skip_without_its_package(pipeline: Pipeline) -> None:
    if pipeline.missing:
        pytest.skip(f"{pipeline.needs} is not installed")


def assert_delivers(seen: dict[str, Any], pipeline: Pipeline) -> None:
    """Asserts that a pipeline does what it is meant to do with torch's loader."""
    assert seen["error"][0] is (pipeline.fails or type(None)), seen["error"]
    assert len(seen["delivered"]) == EPOCHS or pipeline.fails
    assert all(seen["delivered"]) or pipeline.fails


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_headrace_delivers_what_torch_does(pipeline: Pipeline, workers: int, material: Material) -> None:
    skip_without_its_package(pipeline)
    assert_parity(pipeline, workers, material)


@pytest.mark.parametrize("workers", [0, 2])
def test_odd_and_broken_files(odd_files: Pipeline, workers: int, material: Material) -> None:
    with silent_pillow():
        assert_parity(odd_files, workers, material)


def assert_parity(pipeline: Pipeline, workers: int, material: Material) -> None:
    theirs = observe(pipeline, TorchDataLoader, material, workers)
    assert_delivers(theirs, pipeline)
    ours = observe(pipeline, DataLoader, material, workers)
    assert pipeline.deterministic or not ours["native"]
    ours["native"] = theirs["native"]
    found = difference(ours, theirs)
    assert not found, found


def of_pillow(mode: str = "RGB", **info: Any) -> Any:
    image = Image.new(mode, (3, 2))
    image.info.update(info)
    return image


def boxes(format: str) -> Any:
    return tv_tensors.BoundingBoxes([[0, 0, 1, 1]], format=format, canvas_size=(2, 2))


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2), -torch.zeros(2)),
        (torch.zeros(2, 3), torch.zeros(3, 2).T),
        (torch.zeros(2), tv_tensors.Mask(torch.zeros(2))),
        (boxes("XYXY"), boxes("XYWH")),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), np.zeros((1, 2))),
        ([1, 2], (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, OrderedDict(a=1)),
        (1, 1.0),
        (0.0, -0.0),
        (np.float32(1), np.float64(1)),
        ("a", "b"),
        (of_pillow(), of_pillow("L")),
        (of_pillow(), of_pillow(dpi=(1, 2))),
        ([of_pillow()], [of_pillow().resize((2, 3))]),
        ((1, [2, {"a": torch.ones(1)}]), (1, [2, {"a": torch.zeros(1)}])),
    ],
)
def test_the_comparison_sees(ours: Any, theirs: Any) -> None:
    assert difference(ours, theirs) and difference(theirs, ours)
    assert difference(ours, ours) is None and difference(theirs, theirs) is None
