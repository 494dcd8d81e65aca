"""Samples of several parts: masks, boxes, low resolutions, two domains."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms as T
from torchvision import tv_tensors
from torchvision.transforms import functional as F
from torchvision.transforms import v2

from pipelines.material import Material
from pipelines.registry import pipeline


class Indexed(Dataset[Any]):
    """A dataset of `count` samples that `sample` makes from the index."""

    def __init__(self, count: int, sample: Any) -> None:
        self.count, self.sample = count, sample

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.sample(index)


@pipeline()
def image_and_mask_with_the_same_crop(material: Material) -> dict[str, Any]:
    def sample(index: int) -> Any:
        image = Image.open(material.photos[index]).convert("RGB")
        mask = Image.open(material.masks[index])
        top, left, height, width = T.RandomCrop.get_params(image, (50, 60))
        image, mask = (F.crop(one, top, left, height, width) for one in (image, mask))
        if random.random() > 0.5:
            image, mask = F.hflip(image), F.hflip(mask)
        if random.random() > 0.5:
            image, mask = F.vflip(image), F.vflip(mask)
        angle = random.uniform(-20, 20)
        image = F.rotate(image, angle, T.InterpolationMode.BILINEAR)
        mask = F.rotate(mask, angle, fill=255)
        return F.to_tensor(image), torch.as_tensor(np.array(mask), dtype=torch.int64)

    return {"dataset": Indexed(len(material.photos), sample), "batch_size": 4, "shuffle": True}


@pipeline()
def unet_with_scaled_masks(material: Material) -> dict[str, Any]:
    """Resizes both by a factor, and numbers the values of the mask."""

    def sample(index: int) -> Any:
        image, mask = Image.open(material.photos[index]), Image.open(material.masks[index])
        size = 40, int(0.5 * image.size[1]) // 16 * 16
        pixels = np.asarray(image.resize((size[0], 48), resample=Image.Resampling.BICUBIC)).transpose(2, 0, 1) / 255.0
        values = np.asarray(mask.resize((size[0], 48), resample=Image.Resampling.NEAREST))
        numbered = np.zeros((48, 40), np.int64)
        for number, value in enumerate(np.unique(values)):
            numbered[values == value] = number
        return {
            "image": torch.as_tensor(pixels.copy()).float().contiguous(),
            "mask": torch.as_tensor(numbered.copy()).long(),
        }

    return {"dataset": Indexed(len(material.photos), sample), "batch_size": 4, "shuffle": True}


@pipeline()
def voc_with_tv_tensors(material: Material) -> dict[str, Any]:
    steps = v2.Compose(
        [
            v2.ToImage(),
            v2.RandomPhotometricDistort(p=0.5),
            v2.RandomResizedCrop((48, 48), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
        ]
    )

    def sample(index: int) -> Any:
        image = Image.open(material.photos[index]).convert("RGB")
        mask = tv_tensors.Mask(Image.open(material.masks[index]))
        width, height = image.size
        boxes = tv_tensors.BoundingBoxes(
            [[3, 4, width - 5, height - 9]], format="XYXY", canvas_size=(height, width), dtype=torch.float32
        )
        return steps(image, {"masks": mask, "boxes": boxes, "labels": torch.tensor([index])})

    return {"dataset": Indexed(len(material.photos), sample), "batch_size": 4, "shuffle": True}


def in_tuples(batch: Any) -> Any:
    return tuple(zip(*batch, strict=True))


def coco(material: Material) -> tuple[list[Any], dict[int, list[Any]]]:
    """The images of the annotation file, and the annotations of each."""
    read = json.loads(material.boxes.read_text())
    by_image: dict[int, list[Any]] = {one["id"]: [] for one in read["images"]}
    for annotation in read["annotations"]:
        by_image[annotation["image_id"]].append(annotation)
    return read["images"], by_image


@pipeline()
def coco_with_a_zipping_collate(material: Material) -> dict[str, Any]:
    images, by_image = coco(material)
    folder = material.photos[0].parent

    def sample(index: int) -> Any:
        image = Image.open(folder / images[index]["file_name"]).convert("RGB")
        boxes = torch.as_tensor([one["bbox"] for one in by_image[index]], dtype=torch.float32).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        boxes[:, 0::2].clamp_(min=0, max=image.width)
        labels = torch.tensor([one["category_id"] for one in by_image[index]], dtype=torch.int64)
        if random.random() < 0.5:
            image = F.hflip(image)
            boxes[:, [0, 2]] = image.width - boxes[:, [2, 0]]
        return F.to_tensor(image), {"boxes": boxes, "labels": labels, "image_id": index}

    options = {"batch_size": 2, "shuffle": True, "collate_fn": lambda batch: tuple(zip(*batch, strict=True))}
    return {"dataset": Indexed(len(images), sample), **options}


@pipeline()
def coco_in_v2(material: Material) -> dict[str, Any]:
    images, by_image = coco(material)
    folder = material.photos[0].parent
    steps = v2.Compose(
        [
            v2.RandomZoomOut(fill={tv_tensors.Image: (123, 117, 104), "others": 0}, side_range=(1.0, 2.0)),
            v2.RandomIoUCrop(),
            v2.RandomHorizontalFlip(),
            v2.SanitizeBoundingBoxes(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )

    def sample(index: int) -> Any:
        image = Image.open(folder / images[index]["file_name"]).convert("RGB")
        given = torch.tensor([one["bbox"] for one in by_image[index]]).reshape(-1, 4)
        boxes = tv_tensors.BoundingBoxes(given, format="XYWH", canvas_size=(image.height, image.width))
        labels = torch.tensor([one["category_id"] for one in by_image[index]], dtype=torch.int64)
        return steps(image, {"boxes": boxes, "labels": labels})

    return {"dataset": Indexed(len(images), sample), "batch_size": 3, "shuffle": True, "collate_fn": in_tuples}


@pipeline()
def super_resolution(material: Material) -> dict[str, Any]:
    """A random crop, and the same at half and at a third of its size."""

    def sample(index: int) -> Any:
        image = Image.open(material.photos[index]).convert("RGB")
        left, top = random.randint(0, image.width - 60), random.randint(0, image.height - 60)
        high = image.crop((left, top, left + 60, top + 60))
        if random.random() < 0.5:
            high = high.transpose(Image.Transpose.ROTATE_90)
        low = high.resize((30, 30), Image.Resampling.BICUBIC)
        lowest = high.resize((20, 20), Image.Resampling.BICUBIC, reducing_gap=2.0)
        back = low.resize(high.size, Image.Resampling.BICUBIC)
        return tuple(map(F.to_tensor, (low, lowest, back, high)))

    return {"dataset": Indexed(len(material.photos), sample), "batch_size": 4, "shuffle": True}


@pipeline()
def super_resolution_on_luma(material: Material) -> dict[str, Any]:
    def sample(index: int) -> Any:
        luma, _, _ = Image.open(material.photos[index]).convert("YCbCr").split()
        luma = T.RandomCrop(48)(luma)
        return F.to_tensor(luma.resize((24, 24), Image.Resampling.BICUBIC)), F.to_tensor(luma)

    return {"dataset": Indexed(len(material.photos), sample), "batch_size": 4, "shuffle": True}


@pipeline()
def two_unaligned_domains(material: Material) -> dict[str, Any]:
    first, second = (sorted(folder.iterdir()) for folder in material.two_domains)
    steps = T.Compose(
        [
            T.Resize(72, T.InterpolationMode.BICUBIC),
            T.RandomCrop(64),
            T.RandomHorizontalFlip(),
            T.ToTensor(),
            T.Normalize((0.5,) * 3, (0.5,) * 3),
        ]
    )

    def opened(path: Path) -> Any:
        return steps(Image.open(path).convert("RGB"))

    def sample(index: int) -> dict[str, Any]:
        a, b = first[index % len(first)], second[random.randint(0, len(second) - 1)]
        return {"A": opened(a), "B": opened(b), "A_paths": str(a), "B_paths": str(b)}

    return {"dataset": Indexed(max(len(first), len(second)), sample), "batch_size": 1, "shuffle": True}


@pipeline()
def two_halves_of_one_image(material: Material) -> dict[str, Any]:
    """As of pix2pix: the left half and the right half, with the same crop."""

    def sample(index: int) -> Any:
        both = Image.open(material.photos[index]).convert("RGB")
        width, height = both.size
        half = width // 2
        a, b = both.crop((0, 0, half, height)), both.crop((half, 0, width, height))
        a, b = (one.resize((72, 72), Image.Resampling.BICUBIC) for one in (a, b))
        x, y = (random.randint(0, 8) for _ in range(2))
        left, right = (F.to_tensor(one.crop((x, y, x + 64, y + 64))) for one in (a, b))
        if random.random() > 0.5:
            left, right = torch.flip(left, [2]), torch.flip(right, [2])
        return {"A": left, "B": right}

    return {"dataset": Indexed(len(material.photos), sample), "batch_size": 4, "shuffle": True}


@pipeline()
def triplets(material: Material) -> dict[str, Any]:
    """An anchor, another image of its class, and one of another class, drawn with numpy's generator."""
    crop = T.Compose([T.RandomResizedCrop(32), T.ToTensor()])

    def sample(index: int) -> Any:
        others = np.arange(len(material.photos))
        same = np.random.choice(others[(others % 3 == index % 3) & (others != index)])  # noqa: NPY002
        different = np.random.choice(others[others % 3 != index % 3])  # noqa: NPY002
        opened = [Image.open(material.photos[k]).convert("RGB") for k in (index, same, different)]
        return [crop(image) for image in opened], (int(same), int(different))

    return {"dataset": Indexed(len(material.photos), sample), "batch_size": 4, "shuffle": True}
