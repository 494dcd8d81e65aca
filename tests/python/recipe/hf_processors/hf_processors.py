"""Image processors of transformers, without downloads; tests that use them are skipped where it is not installed."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

from headrace import DataLoader
from headrace.datasets.sources.dataset import BlobDataset
from torchvision_shim import import_torchvision

#: Name of the processor's class without "ImageProcessor" -> transformers' folder of the model.
FAMILIES = {
    "ViT": "vit",
    "DeiT": "deit",
    "CLIP": "clip",
    "Siglip": "siglip",
    "Bit": "bit",  # DINOv2's, too
    "Blip": "blip",
    "ConvNext": "convnext",
    "EfficientNet": "efficientnet",
    "Beit": "beit",
    "MobileNetV2": "mobilenet_v2",
    "Segformer": "segformer",
}
BACKENDS = ("torchvision", "pil")


def processor_class(family: str, backend: str, folder: str = "") -> Any:
    """The class of a processor, or a skip where this version of transformers lacks it."""
    pytest.importorskip("transformers", reason="transformers is not installed")
    import_torchvision()
    folder = folder or FAMILIES[family]
    part, end = ("pil_", "Pil") if backend == "pil" else ("", "")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(f"transformers.models.{folder}.image_processing_{part}{folder}")
    except ModuleNotFoundError:
        pytest.skip(f"this version of transformers has no {backend} processor of {family} where version 5 has it")
    return getattr(module, f"{family}ImageProcessor{end}")


def opened(loader: DataLoader, index: int) -> Any:
    """The image that the loader's dataset opens."""
    source = loader._source
    assert isinstance(source, BlobDataset)
    return source.image(index)


def called(processor: Any, image: Any) -> Any:
    """What the processor makes of one image."""
    return processor(images=image, return_tensors="pt")["pixel_values"][0]
