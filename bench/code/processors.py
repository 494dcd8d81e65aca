"""Image processors of Hugging Face's transformers, in a dataset and in a `collate_fn`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import Dataset

BATCH = 8  # of a collate_fn, because its batches are large


class Processor:
    """An image processor with its class's own settings, made in the process that uses it first.

    Args:
        model: transformers' folder of the model.
        name: the class.
        options: the settings that differ from those of the class.
    """

    def __init__(self, model: str, name: str, **options: Any) -> None:
        self.model, self.name, self.options = model, name, options

    @cached_property
    def made(self) -> Any:
        kind = "image_processing_pil_" if self.name.endswith("Pil") else "image_processing_"
        module = importlib.import_module(f"transformers.models.{self.model}.{kind}{self.model}")
        return getattr(module, self.name)(**self.options)


class OfOneImage(Processor):
    """Called with an image, returns what most programs take of the result: the tensor of the first image."""

    def __call__(self, image: Any) -> Any:
        return self.made(image, return_tensors="pt")["pixel_values"][0]


class OfABatch(Processor):
    """A collate_fn for samples (image, index)."""

    def __call__(self, samples: list[tuple[Any, int]]) -> dict[str, Any]:
        images, indices = zip(*samples, strict=True)
        return {"index": torch.tensor(indices), **self.made(images=self.arranged(images), return_tensors="pt")}

    def arranged(self, images: tuple[Any, ...]) -> list[Any]:
        """The images as the processor wants them."""
        return list(images)


class OfABatchOfTexts(OfABatch):
    """The same for a processor that takes a list of images for each text."""

    def arranged(self, images: tuple[Any, ...]) -> list[Any]:
        return [[image] for image in images]


class Opened(Dataset[Any]):
    """Samples (Pillow's image, index), for a collate_fn that turns the images into tensors."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return Image.open(self.paths[index]).convert("RGB"), index


#: name -> what is called on each image in a dataset
IN_DATASETS: dict[str, Callable[[Any], Any]] = {
    "ViT's processor": OfOneImage("vit", "ViTImageProcessor"),
    "CLIP's processor": OfOneImage("clip", "CLIPImageProcessor"),
    "CLIP's processor, Pillow": OfOneImage("clip", "CLIPImageProcessorPil"),
    "DINOv2's processor": OfOneImage(
        "bit", "BitImageProcessor", size={"shortest_edge": 256}, crop_size={"height": 224, "width": 224}, resample=3
    ),
    "SigLIP2's processor": OfOneImage("siglip2", "Siglip2ImageProcessor"),
}
#: name -> a collate_fn
IN_COLLATE: dict[str, Callable[[list[Any]], Any]] = {
    "CLIP's processor, collate_fn": OfABatch("clip", "CLIPImageProcessor"),
    "Qwen2-VL's processor, collate_fn": OfABatch("qwen2_vl", "Qwen2VLImageProcessor"),
    "SmolVLM's processor, collate_fn": OfABatchOfTexts("smolvlm", "SmolVLMImageProcessor"),
}
