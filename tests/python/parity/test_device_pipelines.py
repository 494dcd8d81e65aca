"""Some of the pipelines as people write them deliver the same on the emulated device as with torch's DataLoader.

``HEADRACE_PIPELINES=all`` runs all of them, also without workers: three minutes of two cores.
"""

from __future__ import annotations

import functools
import os

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
from support import in_host_memory

__all__ = ["material"]  # a fixture

pytestmark = pytest.mark.processes

ON_DEVICE = functools.partial(DataLoader, device="emulated")
ALL = os.environ.get("HEADRACE_PIPELINES") == "all"
SOME = (
    *("image_and_label", "gray", "v2_on_pillow_images", "jitter_gray_and_blur", "dict_of_views", "mixup_and_cutmix"),
    *(
        "corner_of_a_damaged_file",
        "error_of_a_truncated_file",
        "image_and_mask_with_the_same_crop",
        "webdataset_shards",
    ),
)


@pytest.mark.parametrize("workers", [0, 2] if ALL else [2])
@pytest.mark.parametrize("name", list(PIPELINES) if ALL else SOME)
def test_the_emulated_device_delivers_what_torch_does(name: str, workers: int, material: Material) -> None:
    pipeline: Pipeline = PIPELINES[name]
    skip_without_its_package(pipeline)
    theirs = observe(pipeline, TorchDataLoader, material, workers)
    assert_delivers(theirs, pipeline)
    ours = observe(pipeline, ON_DEVICE, material, workers)
    ours["delivered"] = tree_map_only(torch.Tensor, in_host_memory, ours["delivered"])
    theirs["native"] = ours["native"]  # headrace's threads read some of the datasets
    found = difference(ours, theirs)
    assert not found, found
