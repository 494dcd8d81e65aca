"""Arguments of the loader that people set: collate_fn, worker_init_fn, batch sizes, samplers, persistent workers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import default_collate
from torchvision import datasets
from torchvision import transforms as T
from torchvision.transforms import v2

from pipelines.material import Material
from pipelines.own import TRAIN, Photographs
from pipelines.registry import pipeline

CROP = T.Compose([T.RandomResizedCrop(40), T.RandomHorizontalFlip()])


def images_and_labels(material: Material, transform: Any = TRAIN) -> Any:
    return Photographs(material.photos, lambda image, index: (transform(image), index % 3))


@pipeline()
def mixup_and_cutmix(material: Material) -> dict[str, Any]:
    either = v2.RandomChoice([v2.CutMix(num_classes=3), v2.MixUp(num_classes=3)])

    def collate(batch: list[Any]) -> Any:
        return either(*default_collate(batch))

    return {"dataset": images_and_labels(material), "batch_size": 4, "shuffle": True, "collate_fn": collate}


@pipeline()
def mixup_with_numpy(material: Material) -> dict[str, Any]:
    def collate(batch: list[Any]) -> Any:
        images, labels = default_collate(batch)
        weight = np.random.beta(0.4, 0.4)  # noqa: NPY002
        order = torch.randperm(len(images))
        return weight * images + (1 - weight) * images[order], labels, labels[order], weight

    return {"dataset": images_and_labels(material), "batch_size": 4, "shuffle": True, "collate_fn": collate}


def bytes_collate(batch: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Stacks arrays of bytes, as timm's does."""
    targets = torch.tensor([sample[1] for sample in batch], dtype=torch.int64)
    images = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for number, (image, _) in enumerate(batch):
        images[number] += torch.from_numpy(image)
    return images, targets


@pipeline()
def stack_of_bytes(material: Material) -> dict[str, Any]:
    steps = T.Compose([CROP, lambda image: np.rollaxis(np.array(image, dtype=np.uint8), 2)])
    dataset = images_and_labels(material, steps)
    return {"dataset": dataset, "batch_size": 4, "shuffle": True, "collate_fn": bytes_collate}


@pipeline()
def bytes_collate_of_a_folder(material: Material) -> dict[str, Any]:
    steps = T.Compose([CROP, lambda image: np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))])
    dataset = datasets.ImageFolder(material.folder, steps)
    return {"dataset": dataset, "batch_size": 4, "shuffle": True, "collate_fn": bytes_collate, "drop_last": True}


def seed_worker(worker: int) -> None:
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)


@pipeline()
def reproducible_workers(material: Material) -> dict[str, Any]:
    """A seeding worker_init_fn together with a generator."""

    def sample(image: Any, index: int) -> Any:
        return TRAIN(image), random.random(), np.random.rand(2)  # noqa: NPY002

    generator = torch.Generator()
    generator.manual_seed(0)
    options = {"worker_init_fn": seed_worker, "generator": generator}
    return {"dataset": Photographs(material.photos, sample), "batch_size": 4, "shuffle": True, **options}


@pipeline()
def one_image_at_a_time(material: Material) -> dict[str, Any]:
    """An evaluation at full resolution, without batches."""

    def sample(image: Any, index: int) -> Any:
        return T.functional.to_tensor(image), str(material.photos[index]), np.float32(index)

    return {"dataset": Photographs(material.photos, sample), "batch_size": None, "shuffle": True}


@pipeline()
def batches_of_one(material: Material) -> dict[str, Any]:
    dataset = Photographs(material.photos, lambda image, index: T.functional.to_tensor(image))
    return {"dataset": dataset, "batch_size": 1, "shuffle": True}


@pipeline()
def persistent_workers(material: Material) -> dict[str, Any]:
    options = {"persistent_workers": True, "prefetch_factor": 3}
    return {"dataset": images_and_labels(material), "batch_size": 4, "shuffle": True, **options}


@pipeline()
def short_queue_and_timeout(material: Material) -> dict[str, Any]:
    own = torch.Generator().manual_seed(77)
    options = {"prefetch_factor": 1, "timeout": 60, "generator": own}
    return {"dataset": images_and_labels(material), "batch_size": 5, "shuffle": True, **options}


@pipeline()
def batch_sampler(material: Material) -> dict[str, Any]:
    order = [[3, 1], [0, 0, 5], [11]]
    return {"dataset": images_and_labels(material), "batch_sampler": order}


@pipeline()
def list_of_opened_images(material: Material) -> dict[str, Any]:
    """Pillow's images themselves: as opened, loaded, converted, cropped, resized."""

    class Opened(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(material.photos)

        def __getitem__(self, index: int) -> Any:
            image = Image.open(material.photos[index])
            if index % 2:
                image.load()
            converted = Image.open(material.photos[index]).convert("RGB")
            cropped = T.RandomCrop(50)(converted)
            made = [converted, cropped, cropped.resize((20, 30)), converted.convert("L").copy()]
            return [image, *made] if index % 2 else made  # a file that is not loaded cannot be sent to a process

    return {"dataset": Opened(), "batch_size": 3, "shuffle": True, "collate_fn": lambda batch: batch}


@pipeline()
def images_padded_to_the_largest(material: Material) -> dict[str, Any]:
    dataset = Photographs(material.photos, lambda image, index: T.functional.to_tensor(image))

    def collate(batch: list[torch.Tensor]) -> Any:
        height, width = (max(image.shape[axis] for image in batch) for axis in (1, 2))
        padded = batch[0].new_zeros(len(batch), 3, height, width)
        mask = torch.ones(len(batch), height, width, dtype=torch.bool)
        for place, image in enumerate(batch):
            padded[place, :, : image.shape[1], : image.shape[2]] = image
            mask[place, : image.shape[1], : image.shape[2]] = False
        return {"pixel_values": padded, "pixel_mask": mask, "sizes": [tuple(image.shape) for image in batch]}

    return {"dataset": dataset, "batch_size": 3, "shuffle": True, "collate_fn": collate}


@pipeline(fails=RuntimeError)
def images_of_different_sizes(material: Material) -> dict[str, Any]:
    """A mistake that torch reports: the images cannot be stacked."""
    dataset = Photographs(material.photos, lambda image, index: T.functional.to_tensor(image))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True}


@pipeline(fails=TypeError)
def images_without_a_transform(material: Material) -> dict[str, Any]:
    """A mistake that torch reports: default_collate takes no Pillow images. The message has the class."""
    return {"dataset": Photographs(material.photos, lambda image, index: image), "batch_size": 4, "shuffle": True}


@pipeline()
def batches_by_getitems(material: Material) -> dict[str, Any]:
    """A dataset that makes a whole batch at once."""

    class Batched(Photographs):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [self[index] for index in indices]

    dataset = Batched(material.photos, lambda image, index: (TRAIN(image), index))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True}
