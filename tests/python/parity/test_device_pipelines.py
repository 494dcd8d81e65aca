"""Some of the pipelines as people write them deliver the same on the emulated device as with torch's DataLoader.

``HEADRACE_PIPELINES=all`` runs all of them, also without workers: a minute or two of two cores.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from pipelines.alike import difference
from pipelines.material import Material
from pipelines.registry import PIPELINES, Pipeline
from pipelines.running import observe
from test_pipelines import assert_delivers, material, skip_without_its_package
from torch.utils._pytree import tree_map_only
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from headrace._loading.doors.type_checks import checks
from support import in_host_memory

__all__ = ["material"]  # a fixture

pytestmark = pytest.mark.processes

ALL = os.environ.get("HEADRACE_PIPELINES") == "all"
#: Name -> whether workers send records of some of its images. They do not where it looks at pixels, collates them, or
#: makes tensors of fewer bytes than its files have.
SOME = {
    "image_and_label": True,
    "gray": True,
    "v2_on_pillow_images": False,
    "jitter_gray_and_blur": True,
    "dict_of_views": True,
    "dino": False,
    "voc_with_tv_tensors": False,
    "image_and_mask_with_the_same_crop": True,
    "mixup_and_cutmix": False,
    "one_image_at_a_time": True,
    "stream_with_a_length": False,
    "batch_sampler": True,
    "persistent_workers": True,
    "reproducible_workers": True,
    "corner_of_a_damaged_file": False,
    "next_sample_for_a_damaged_file": True,
    "webdataset_shards": True,
    "error_of_a_truncated_file": True,
    "error_of_a_file_refused_late": False,
}


@pytest.fixture(autouse=True)
def _tests_are_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests in this process compare types with `is`, where tensors are not deferred."""
    monkeypatch.setattr(checks, "look", lambda: None)


@pytest.mark.parametrize("workers", [0, 2] if ALL else [2])
@pytest.mark.parametrize("name", list(PIPELINES) if ALL else SOME)
def test_the_emulated_device_delivers_what_torch_does(name: str, workers: int, material: Material) -> None:
    pipeline: Pipeline = PIPELINES[name]
    skip_without_its_package(pipeline)
    theirs = observe(pipeline, TorchDataLoader, material, workers)
    assert_delivers(theirs, pipeline)
    loaders: list[Any] = []

    def on_device(**options: Any) -> Any:
        loaders.append(DataLoader(**options, device="emulated"))
        return loaders[0]

    ours = observe(pipeline, on_device, material, workers)
    ours["delivered"] = tree_map_only(torch.Tensor, in_host_memory, ours["delivered"])
    theirs["native"] = ours["native"]  # headrace's threads read some of the datasets
    found = difference(ours, theirs)
    assert not found, found
    (loader,) = loaders
    if name in SOME and workers:
        assert bool(loader.stats().images.recorded) is SOME[name], loader.explain()
