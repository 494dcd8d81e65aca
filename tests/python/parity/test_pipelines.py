"""Pipelines as people write them deliver the same with headrace's DataLoader as with torch's."""

from __future__ import annotations

import pytest
from pipelines import augment, batching, damage, own, pairs, reading, streams, views
from pipelines.alike import difference
from pipelines.material import Material
from pipelines.registry import PIPELINES, Pipeline
from pipelines.running import EPOCHS, observe
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader

pytestmark = pytest.mark.processes

KINDS = augment, batching, damage, own, pairs, reading, streams, views


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    return Material(tmp_path_factory.mktemp("material"))


def skip_without_its_package(pipeline: Pipeline) -> None:
    if pipeline.missing:
        pytest.skip(f"{pipeline.needs} is not installed")


def assert_delivers(seen: dict, pipeline: Pipeline) -> None:
    """Asserts that a pipeline does what it is meant to do with torch's loader."""
    assert seen["error"][0] is (pipeline.fails or type(None)), seen["error"]
    assert len(seen["delivered"]) == EPOCHS or pipeline.fails
    assert all(seen["delivered"]) or pipeline.fails


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_headrace_delivers_what_torch_does(pipeline, workers, material):
    skip_without_its_package(pipeline)
    theirs = observe(pipeline, TorchDataLoader, material, workers)
    assert_delivers(theirs, pipeline)
    ours = observe(pipeline, DataLoader, material, workers)
    assert pipeline.deterministic or not ours["native"]
    ours["native"] = theirs["native"]
    found = difference(ours, theirs)
    assert not found, found
