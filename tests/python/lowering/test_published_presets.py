"""The presets that come with published weights are native, and equal themselves called on each image: to the bit."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import Any

import pytest
import torch

from headrace import DataLoader
from headrace._lowering import lower
from support import blobs

pytestmark = pytest.mark.slow


def assert_native(transform: Any) -> None:
    """Asserts that a preset is native, and that batches equal what it makes of Pillow's images."""
    lower(transform, native_only=True, may_vary=True)
    data = blobs(2, transform)
    loader = DataLoader(data, 1)
    assert loader.native
    for k, (images, _) in enumerate(loader):
        expected = transform(data.image(k))
        assert images.dtype == expected.dtype and torch.equal(images[0], expected)


def presets(torchvision: ModuleType, kind: str) -> dict[str, Any]:
    """The presets of torchvision's weights that are of this class and differ, by their repr."""
    found = {}
    for name in torchvision.models.list_models():
        for weights in torchvision.models.get_model_weights(name):
            transform = weights.transforms()
            if type(transform).__name__ == kind:
                found[repr(transform)] = transform
    return found


@pytest.mark.pixels
@pytest.mark.parametrize(
    ("kind", "least"), [("ImageClassification", 25), ("SemanticSegmentation", 1), ("ObjectDetection", 1)]
)
def test_torchvisions_weights(torchvision: ModuleType, kind: str, least: int) -> None:
    found = presets(torchvision, kind)
    assert len(found) >= least
    for transform in found.values():
        assert_native(transform)


@pytest.mark.pixels
def test_a_segmentation_preset_without_resize(torchvision: ModuleType) -> None:
    preset = importlib.import_module("torchvision.transforms._presets").SemanticSegmentation
    assert_native(preset(resize_size=None))


def test_videos_have_no_native_preset(torchvision: ModuleType) -> None:
    """They take tensors of several frames, not images."""
    for kind in ("VideoClassification", "OpticalFlow"):
        for transform in presets(torchvision, kind).values():
            assert [name for name, _ in lower_leaves(transform)] == [kind]


def lower_leaves(transform: Any) -> list[tuple[str, Any]]:
    from headrace._lowering.transform_library import leaf_transforms

    return [(type(leaf).__name__, leaf) for leaf in leaf_transforms(transform)]


@pytest.mark.pixels
def test_timms_weights(torchvision: ModuleType) -> None:
    """All different configurations of timm's weights, for evaluation: crops, squashes, borders."""
    pytest.importorskip("timm", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timm = importlib.import_module("timm")
    found = {}
    for name in timm.list_pretrained():
        config = timm.data.resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
        found[repr(sorted(config.items()))] = config
    assert len(found) > 150
    assert {config["crop_mode"] for config in found.values()} == {"center", "squash", "border"}
    for config in found.values():
        assert_native(timm.data.create_transform(**config))
