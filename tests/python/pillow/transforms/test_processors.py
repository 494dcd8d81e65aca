"""Hugging Face's image processors on deferred images: what they make of Pillow's."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from own_dataset import OwnDataset
from torchvision_shim import import_torchvision

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")]
# Both backends: torch's resize of bytes, and Pillow's of an array.
PROCESSORS = {
    "ViTImageProcessor": "transformers.models.vit.image_processing_vit",
    "CLIPImageProcessor": "transformers.models.clip.image_processing_clip",
    "SiglipImageProcessor": "transformers.models.siglip.image_processing_siglip",
    "Qwen2VLImageProcessor": "transformers.models.qwen2_vl.image_processing_qwen2_vl",
    "ViTImageProcessorPil": "transformers.models.vit.image_processing_pil_vit",
    "CLIPImageProcessorPil": "transformers.models.clip.image_processing_pil_clip",
}


@pytest.fixture(params=PROCESSORS)
def processor(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip("transformers", reason="transformers is not installed")
    import_torchvision()
    try:
        module = importlib.import_module(PROCESSORS[request.param])
    except ModuleNotFoundError:
        pytest.skip("this version of transformers has its processors elsewhere")
    return getattr(module, request.param)()


def test_batches_are_torchs(processor: Any, photographs: list[Path]) -> None:
    def transform(image: Image.Image) -> Any:
        return processor(image, return_tensors="pt")["pixel_values"][0]

    dataset = OwnDataset(photographs[:4], transform)
    expected = list(TorchDataLoader(dataset, batch_size=2))
    loader = headrace.DataLoader(dataset, batch_size=2)
    for (ours, indices), (theirs, same_indices) in zip(loader, expected, strict=True):
        assert torch.equal(ours, theirs)
        assert torch.equal(indices, same_indices)
    assert loader.route == "deferred"
    counts = loader.stats().images
    assert counts is not None and counts.native == 4
