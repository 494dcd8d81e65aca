"""Some of the pipelines as people write them deliver the same with ``pin_memory=True`` as with torch's DataLoader, and
have the same tensors in pinned memory.

``HEADRACE_PIPELINES=all`` runs all of them, with and without records.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
import pytest
import torch
from pipelines.alike import difference
from pipelines.material import Material
from pipelines.registry import PIPELINES, Pipeline
from pipelines.running import observe
from test_pipelines import assert_delivers, material, skip_without_its_package
from torch.utils._pytree import tree_flatten
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_collate

from headrace import Columns, DataLoader, EncodedImages, Fields
from headrace import transforms as T
from headrace._loading.doors.type_checks import checks
from headrace._loading.records import record_makers
from pinned_memory import pinned_memory
from support import TENSOR, assert_same, blobs, pictures, train

__all__ = ["material"]  # a fixture

pytestmark = pytest.mark.processes

ALL = os.environ.get("HEADRACE_PIPELINES") == "all"
#: With eight cores two workers send records, and the main process makes them in pinned memory; with one core the
#: workers make values, which torch pins.
MANY, FEW = 8.0, 1.0
SOME = {
    ("plain_folder", FEW): False,  # headrace's own threads
    ("image_and_label", MANY): True,
    ("image_and_label", FEW): False,
    ("gray", MANY): True,
    ("dict_of_views", MANY): True,
    ("dino", MANY): False,  # a collate_fn of its own
    ("image_and_mask_with_the_same_crop", MANY): True,
    ("mixup_and_cutmix", MANY): False,
    ("one_image_at_a_time", MANY): True,
    ("persistent_workers", MANY): True,
    ("persistent_workers", FEW): False,
    ("next_sample_for_a_damaged_file", MANY): True,
    ("webdataset_shards", MANY): True,
    ("error_of_a_truncated_file", MANY): True,
}
EVERY = [(name, cores) for name in PIPELINES for cores in (MANY, FEW)]


def pinned_parts(delivered: Any) -> list[bool]:
    """Whether each tensor in lists, tuples and dicts is pinned, in order."""
    return [one.is_pinned() for one in tree_flatten(delivered)[0] if isinstance(one, torch.Tensor)]


@pytest.mark.parametrize("name, cores", EVERY if ALL else SOME)
def test_pinned_batches_are_torchs(
    name: str, cores: float, material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline: Pipeline = PIPELINES[name]
    skip_without_its_package(pipeline)
    monkeypatch.setattr(checks, "look", lambda: None)  # tests in this process compare types with `is`
    monkeypatch.setattr(record_makers, "cores_of_rank", lambda: (cores, f"{cores:g} cores"))
    loaders: list[Any] = []

    def pinning(**options: Any) -> Any:
        loaders.append(DataLoader(**options, pin_memory=True))
        return loaders[0]

    with pinned_memory():
        theirs = observe(pipeline, functools.partial(TorchDataLoader, pin_memory=True), material, 2)
        ours = observe(pipeline, pinning, material, 2)
        where = pinned_parts(theirs["delivered"])
        assert pinned_parts(ours["delivered"]) == where
    assert_delivers(theirs, pipeline)
    assert any(where) or name not in {one for one, _ in SOME}
    theirs["native"] = ours["native"]  # headrace's threads read some of the datasets
    found = difference(ours, theirs)
    assert not found, found
    if (name, cores) in SOME:
        images = loaders[0].stats().images
        assert bool(images and images.recorded) is SOME[name, cores], loaders[0].explain()


def doubled(samples: list[Any]) -> dict[str, torch.Tensor]:
    """A collate_fn whose tensors are new."""
    images, labels = default_collate(samples)
    return {"images": images * 2, "labels": labels}


COLOURS = T.Compose([T.RandomResizedCrop(32), *TENSOR])
#: Loaders whose batches headrace's threads make.
NATIVE: dict[str, Any] = {
    "images and labels": lambda: {"dataset": blobs()},
    "a collate_fn": lambda: {"dataset": blobs(), "collate_fn": doubled},
    "one by one": lambda: {"dataset": blobs(), "batch_size": None},
    "bad samples": lambda: {"dataset": EncodedImages([*pictures(6), b"none"], transform=train(32)), "on_error": "skip"},
    "views": lambda: {"dataset": blobs(transform=T.Views([COLOURS, T.Compose([T.Resize((16, 16)), *TENSOR])]))},
    "fields": lambda: {"dataset": Fields({"image": blobs(), "row": Columns({"row": np.arange(24.0)})})},
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.filterwarnings("ignore:.* could not be made")
def test_batches_of_headraces_threads_are_pinned(name: str, workers: int) -> None:
    options = {"batch_size": 5, "num_workers": workers, "seed": 1, "shuffle": True}
    with pinned_memory():
        plain = DataLoader(**{**options, **NATIVE[name]()})
        pinned = DataLoader(**{**options, **NATIVE[name]()}, pin_memory=True)
        assert pinned.route == "native"
        expected, made = list(plain), list(pinned)
        assert all(pinned_parts(made)) and not any(pinned_parts(expected))
        assert assert_same(made, expected) == len(expected) > 0
