"""Datasets that people write themselves for classification: an image, and what comes with it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import Dataset, Subset, TensorDataset, random_split
from torchvision import datasets
from torchvision import transforms as T

from pipelines.material import CLASSES, Material
from pipelines.registry import pipeline

TRAIN = T.Compose(
    [
        T.RandomResizedCrop(48),
        T.RandomHorizontalFlip(),
        T.ToTensor(),
        T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]
)
EVALUATE = T.Compose([T.Resize(56), T.CenterCrop(48), T.ToTensor()])


class Photographs(Dataset[Any]):
    """Opens each file, and returns what `sample` makes of the image and the index."""

    def __init__(self, paths: list[Path], sample: Callable[[Any, int], Any], mode: str = "RGB") -> None:
        self.paths, self.sample, self.mode = paths, sample, mode

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert(self.mode)
        return self.sample(image, index)


@pipeline()
def image_and_label(material: Material) -> dict[str, Any]:
    dataset = Photographs(material.photos, lambda image, index: (TRAIN(image), index % 3))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True}


@pipeline()
def no_label(material: Material) -> dict[str, Any]:
    dataset = Photographs(material.photos, lambda image, index: TRAIN(image))
    return {"dataset": dataset, "batch_size": 5, "shuffle": True, "drop_last": True}


@pipeline()
def gray(material: Material) -> dict[str, Any]:
    steps = T.Compose([T.RandomCrop(64, pad_if_needed=True), T.RandomRotation(10), T.ToTensor()])
    dataset = Photographs(material.photos, lambda image, index: (steps(image), index % 3), "L")
    return {"dataset": dataset, "batch_size": 4, "shuffle": True, "generator": torch.Generator().manual_seed(5)}


@pipeline()
def dict_of_image_label_and_name(material: Material) -> dict[str, Any]:
    names = [path.stem for path in material.photos]

    def sample(image: Any, index: int) -> dict[str, Any]:
        return {"image": TRAIN(image), "label": index % 3, "name": names[index], "weight": index / 7}

    return {"dataset": Photographs(material.photos, sample), "batch_size": 4, "shuffle": True}


@pipeline()
def image_label_and_path(material: Material) -> dict[str, Any]:
    dataset = Photographs(material.photos, lambda image, index: (TRAIN(image), index % 3, str(material.photos[index])))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True}


@pipeline()
def index_image_and_size(material: Material) -> dict[str, Any]:
    def sample(image: Any, index: int) -> Any:
        return index, TRAIN(image), torch.tensor([image.height, image.width])

    return {"dataset": Photographs(material.photos, sample), "batch_size": 3, "shuffle": True}


class CsvImages(Dataset[Any]):
    """Names and classes from a table; the image is opened in a ``with`` statement."""

    def __init__(self, table: Path, folder: Path, transform: Any = None) -> None:
        with table.open(newline="") as stream:
            self.rows = list(csv.DictReader(stream))
        self.folder, self.transform = folder, transform

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        if torch.is_tensor(index):
            index = index.tolist()
        row = self.rows[index]
        with Image.open(self.folder / row["image"]) as file:
            image = file.convert("RGB")
        label = torch.tensor(CLASSES.index(row["class"]), dtype=torch.long)
        return (self.transform(image) if self.transform else image), label


@pipeline()
def csv_of_paths_and_labels(material: Material) -> dict[str, Any]:
    dataset = CsvImages(material.table, material.photos[0].parent, TRAIN)
    return {"dataset": dataset, "batch_size": 4, "shuffle": True}


@pipeline(needs="pandas")
def csv_read_by_pandas(material: Material) -> dict[str, Any]:
    import pandas

    frame = pandas.read_csv(material.table)
    names, classes = frame["image"], frame["class"].astype("category").cat.codes
    paths = [material.photos[0].parent / name for name in names]
    dataset = Photographs(paths, lambda image, index: (TRAIN(image), classes.iloc[index]))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True}


class FolderWithPaths(datasets.ImageFolder):
    """Appends the path to what ImageFolder returns."""

    def __getitem__(self, index: int) -> Any:
        return (*super().__getitem__(index), self.samples[index][0])


@pipeline()
def folder_that_appends_the_path(material: Material) -> dict[str, Any]:
    return {"dataset": FolderWithPaths(material.folder, TRAIN), "batch_size": 4, "shuffle": True}


class FolderWithIndex(datasets.ImageFolder):
    """Returns a dictionary of the sample and the index."""

    def __getitem__(self, index: int) -> Any:
        image, target = super().__getitem__(index)
        return {"image": image, "target": target, "index": index}


@pipeline()
def folder_that_returns_dicts(material: Material) -> dict[str, Any]:
    return {"dataset": FolderWithIndex(material.folder, TRAIN), "batch_size": 4, "shuffle": True}


def open_file(path: str) -> Any:
    """A loader as many programs have it."""
    with Path(path).open("rb") as stream:
        image = Image.open(stream)
        return image.convert("RGB")


@pipeline()
def folder_with_a_loader_of_ones_own(material: Material) -> dict[str, Any]:
    return {"dataset": datasets.ImageFolder(material.folder, TRAIN, loader=open_file), "batch_size": 4, "shuffle": True}


@pipeline(deterministic=True)
def plain_folder(material: Material) -> dict[str, Any]:
    return {"dataset": datasets.ImageFolder(material.folder, EVALUATE), "batch_size": 4, "shuffle": True}


@pipeline(deterministic=True)
def plain_folder_subset(material: Material) -> dict[str, Any]:
    own = torch.Generator().manual_seed(2)
    dataset = Subset(datasets.ImageFolder(material.folder, EVALUATE), [7, 1, 1, 4, 9])
    return {"dataset": dataset, "batch_size": 2, "shuffle": True, "generator": own}


class ApplyTransform(Dataset[Any]):
    """A transform of its own for a part of a dataset."""

    def __init__(self, part: Any, transform: Any) -> None:
        self.part, self.transform = part, transform

    def __len__(self) -> int:
        return len(self.part)

    def __getitem__(self, index: int) -> Any:
        image, label = self.part[index]
        return self.transform(image), label


@pipeline()
def transform_of_a_subset(material: Material) -> dict[str, Any]:
    part = Subset(datasets.ImageFolder(material.folder), [0, 2, 4, 6, 8, 10, 11])
    return {"dataset": ApplyTransform(part, TRAIN), "batch_size": 3, "shuffle": True}


@pipeline()
def random_split_of_a_folder(material: Material) -> dict[str, Any]:
    part, _ = random_split(datasets.ImageFolder(material.folder), [0.8, 0.2])  # torch's default generator
    return {"dataset": ApplyTransform(part, TRAIN), "batch_size": 3, "shuffle": True}


@pipeline()
def weighted_sampler(material: Material) -> dict[str, Any]:
    dataset = Photographs(material.photos, lambda image, index: (TRAIN(image), index))
    sampler = torch.utils.data.WeightedRandomSampler([1 + index % 4 for index in range(len(dataset))], 10)
    return {"dataset": dataset, "batch_size": 4, "sampler": sampler}


@pipeline()
def bytes_in_a_dict(material: Material) -> dict[str, Any]:
    """As of LMDB: keys of digits, values of bytes."""
    store = {f"{index:08}".encode(): path.read_bytes() for index, path in enumerate(material.photos)}

    class Store(Dataset[Any]):
        def __len__(self) -> int:
            return len(store)

        def __getitem__(self, index: int) -> Any:
            buffer = io.BytesIO()
            buffer.write(store[f"{index:08}".encode()])
            buffer.seek(0)
            return TRAIN(Image.open(buffer).convert("RGB")), index

    return {"dataset": Store(), "batch_size": 4, "shuffle": True}


@pipeline()
def cache_of_opened_images(material: Material) -> dict[str, Any]:
    """Images are opened once and then kept; each epoch transforms the kept ones."""

    class Cached(Dataset[Any]):
        def __init__(self) -> None:
            self.kept: dict[int, Any] = {}

        def __len__(self) -> int:
            return len(material.photos)

        def __getitem__(self, index: int) -> Any:
            if index not in self.kept:
                image = Image.open(material.photos[index])
                if index % 2:
                    image.load()
                self.kept[index] = image
            image = self.kept[index]
            return TRAIN(image), image.mode, len(self.kept)

    return {"dataset": Cached(), "batch_size": 4, "shuffle": True}


@pipeline()
def all_images_opened_in_the_constructor(material: Material) -> dict[str, Any]:
    class InMemory(Dataset[Any]):
        def __init__(self) -> None:
            self.images = [Image.open(path).convert("RGB") for path in material.photos]

        def __len__(self) -> int:
            return len(self.images)

        def __getitem__(self, index: int) -> Any:
            return TRAIN(self.images[index]), index

    return {"dataset": InMemory(), "batch_size": 4, "shuffle": True}


@pipeline(opens=False)
def tensor_dataset(material: Material) -> dict[str, Any]:
    images = torch.rand(11, 3, 8, 8)
    dataset = TensorDataset(images, torch.arange(11))
    return {"dataset": dataset, "batch_size": 4, "shuffle": True, "generator": torch.Generator().manual_seed(9)}


@pipeline(opens=False)
def fake_data(material: Material) -> dict[str, Any]:
    return {"dataset": datasets.FakeData(9, (3, 60, 70), 4, TRAIN), "batch_size": 4, "shuffle": True}
