"""Several augmented views of each image, for self-supervised training."""

from __future__ import annotations

import random
from typing import Any

import torch
from PIL import Image, ImageFilter, ImageOps
from torchvision import datasets
from torchvision import transforms as T

from pipelines.material import Material
from pipelines.own import Photographs
from pipelines.registry import pipeline

NORMALIZE = T.Normalize([0.48, 0.45, 0.4], [0.22, 0.22, 0.22])
JITTER = T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8)


class Blur:
    """Pillow's Gaussian blur with a random radius of Python's generator."""

    def __init__(self, p: float) -> None:
        self.p = p

    def __call__(self, image: Any) -> Any:
        if random.random() >= self.p:
            return image
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))


class Solarize:
    """Pillow's solarization, sometimes."""

    def __call__(self, image: Any) -> Any:
        return ImageOps.solarize(image) if random.random() < 0.2 else image


class Views:
    """The results of one transform, called several times."""

    def __init__(self, transform: Any, count: int = 2) -> None:
        self.transform, self.count = transform, count

    def __call__(self, image: Any) -> list[Any]:
        return [self.transform(image) for _ in range(self.count)]


@pipeline()
def simclr(material: Material) -> dict[str, Any]:
    steps = [T.RandomResizedCrop(48), T.RandomHorizontalFlip(), JITTER, T.RandomGrayscale(0.2)]
    steps += [T.GaussianBlur(5), T.ToTensor()]
    dataset = datasets.ImageFolder(material.folder, Views(T.Compose(steps)))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True, "drop_last": True}


@pipeline()
def moco(material: Material) -> dict[str, Any]:
    steps = [T.RandomResizedCrop(48, scale=(0.2, 1.0)), JITTER, T.RandomGrayscale(0.2), Blur(0.5)]
    steps += [T.RandomHorizontalFlip(), T.ToTensor(), NORMALIZE]
    one = T.Compose(steps)

    def query_and_key(image: Any) -> list[Any]:
        return [one(image), one(image)]

    dataset = datasets.ImageFolder(material.folder, query_and_key)
    return {"dataset": dataset, "batch_size": 4, "shuffle": True}


class MultiCrop:
    """Two large crops and eight small ones, with different augmentations."""

    def __init__(self) -> None:
        flip_and_color = T.Compose([T.RandomHorizontalFlip(), JITTER, T.RandomGrayscale(0.2)])
        end = T.Compose([T.ToTensor(), NORMALIZE])
        bicubic = T.InterpolationMode.BICUBIC

        def crop(size: int, low: float, high: float) -> Any:
            return T.RandomResizedCrop(size, scale=(low, high), interpolation=bicubic)

        self.first = T.Compose([crop(56, 0.4, 1.0), flip_and_color, Blur(1.0), end])
        self.second = T.Compose([crop(56, 0.4, 1.0), flip_and_color, Blur(0.1), Solarize(), end])
        self.small = T.Compose([crop(24, 0.05, 0.4), flip_and_color, Blur(0.5), end])

    def __call__(self, image: Any) -> list[Any]:
        return [self.first(image), self.second(image), *(self.small(image) for _ in range(8))]


@pipeline()
def dino(material: Material) -> dict[str, Any]:
    return {"dataset": datasets.ImageFolder(material.folder, MultiCrop()), "batch_size": 4, "shuffle": True}


@pipeline()
def dict_of_views(material: Material) -> dict[str, Any]:
    crop = T.Compose([T.RandomResizedCrop(40), T.ToTensor()])
    weak = T.Compose([T.Resize((40, 40)), T.ToTensor()])

    def sample(image: Any, index: int) -> Any:
        views = {"global_crops": [crop(image), crop(image)], "weak": weak(image)}
        return {"views": views, "offsets": (), "index": index}

    return {"dataset": Photographs(material.photos, sample), "batch_size": 4, "shuffle": True}


@pipeline()
def supervised_contrastive(material: Material) -> dict[str, Any]:
    """A stack of views, next to the whole image and its mirrored copy."""
    crop = T.Compose([T.RandomResizedCrop(32, interpolation=T.InterpolationMode.NEAREST), T.PILToTensor()])

    def sample(image: Any, index: int) -> Any:
        whole = image.resize((32, 32), Image.Resampling.LANCZOS)
        mirrored = whole.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.stack([crop(image) for _ in range(3)]), T.functional.pil_to_tensor(mirrored), index % 3

    return {"dataset": Photographs(material.photos, sample), "batch_size": 4, "shuffle": True}


@pipeline()
def five_crops_of_an_evaluation(material: Material) -> dict[str, Any]:
    stack = T.Lambda(lambda crops: torch.stack([T.functional.to_tensor(crop) for crop in crops]))
    steps = T.Compose([T.Resize(60), T.TenCrop(48), stack])
    dataset = Photographs(material.photos, lambda image, index: (steps(image), index))
    return {"dataset": dataset, "batch_size": 2, "shuffle": True}


@pipeline()
def jigsaw(material: Material) -> dict[str, Any]:
    """Nine tiles in random order, and the order."""

    def sample(image: Any, index: int) -> Any:
        square = T.functional.center_crop(T.functional.resize(image, 90), 90)
        tiles = [square.crop((x, y, x + 30, y + 30)) for y in range(0, 90, 30) for x in range(0, 90, 30)]
        order = torch.randperm(9)
        return torch.stack([T.functional.to_tensor(tiles[int(k)]) for k in order]), order

    return {"dataset": Photographs(material.photos, sample), "batch_size": 4, "shuffle": True}
