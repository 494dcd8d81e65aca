"""Datasets of programs: torchvision's without their archives, subclasses of these, and classes as people write them."""

from __future__ import annotations

import random
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, get_worker_info
from torchvision import datasets, transforms

from fuzz.programs.world import files

COUNT = files.CLASSES * files.EACH
Pair = namedtuple("Pair", "image label")


def pixels(count: int = COUNT, shape: tuple[int, ...] = (12, 10, 3)) -> Any:
    """Images as one array. Every third is dark."""
    made = np.random.default_rng(count).integers(60, 256, (count, *shape), dtype=np.uint8)
    made[::3] //= 8
    return made


def red(size: tuple[int, int] = (30, 20)) -> Image.Image:
    """An image that no file has."""
    return Image.new("RGB", size, (200, 1, 1))


def own_loader(path: str) -> Image.Image:
    """A loader as torchvision's page shows it, but for the rotation."""
    with Path(path).open("rb") as file:
        return Image.open(file).convert("RGB").rotate(180)


def paths_of(data: Any) -> list[str]:
    """The files of a dataset, or of a folder."""
    if isinstance(data, str):
        return sorted(map(str, Path(data).rglob("*.*")))
    return [str(one) for one in getattr(data, "paths", None) or [path for path, _ in data.samples]]


def swap_files(data: Any) -> None:
    """Exchanges the first two files."""
    one, other = map(Path, paths_of(data)[:2])
    between = one.with_suffix(".tmp")
    one.rename(between), other.rename(one), between.rename(other)


def _bare(kind: Any, **attributes: Any) -> Any:
    dataset = object.__new__(kind)
    vars(dataset).update(root="none", transforms=None, train=True, **attributes)
    return dataset


def cifar(labels: Any, transform: Any = None, target_transform: Any = None, kind: Any = datasets.CIFAR10) -> Any:
    """A CIFAR10 that was not read from its archive."""
    return _bare(
        kind,
        data=pixels(len(labels), (32, 32, 3)),
        targets=labels,
        transform=transform,
        target_transform=target_transform,
    )


def mnist(labels: Any, transform: Any = None, target_transform: Any = None, kind: Any = datasets.MNIST) -> Any:
    """An MNIST that was not read from its archive."""
    data = torch.from_numpy(pixels(len(labels), (28, 28)))
    return _bare(kind, data=data, targets=labels, transform=transform, target_transform=target_transform)


class Opens(Dataset[Any]):
    """Opens images: the dataset that most programs write.

    Args:
        paths, labels, transform, target_transform: of the samples.
        form: what a sample is.
    """

    def __init__(
        self, paths: list[str], labels: Any, transform: Any = None, target_transform: Any = None, form: str = "tuple"
    ) -> None:
        self.paths, self.labels, self.form = paths, labels, form
        self.transform, self.target_transform = transform, target_transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> Any:
        image: Any = Image.open(self.paths[index]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        label = self.labels[index]
        if self.target_transform is not None:
            label = self.target_transform(label)
        made = {"tuple": (image, label), "list": [image, label], "pair": Pair(image, label), "image": image}
        return {**made, "dict": {"image": image, "label": label}, "nested": {"a": [image, {"b": label}], "n": index}}[
            self.form
        ]


class Batched(Opens):
    """Makes whole batches."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in reversed(indices)]


class Drawing(Opens):
    """Draws from the generators of the process: a crop, and a number."""

    def __getitem__(self, index: int) -> Any:
        image, label = super().__getitem__(index)
        by = random.random() + np.random.rand() + torch.rand(()).item()  # noqa: NPY002
        return image * by, label


class Lazy(Opens):
    """Makes its transform when it is first needed, and counts what it has read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.read: list[int] = []

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        image, label = super().__getitem__(index)
        return image + len(self.read), label


class Folder(datasets.ImageFolder):
    """A subclass that changes nothing."""


class FolderWithPaths(datasets.ImageFolder):
    """A subclass that returns more."""

    def __getitem__(self, index: int) -> Any:
        image, label = super().__getitem__(index)
        return image, label, len(self.samples[index][0])


class FolderOfSome(datasets.ImageFolder):
    """A subclass that is shorter."""

    def __len__(self) -> int:
        return 7


class FolderOfLoaders(datasets.ImageFolder):
    """A subclass that loads its own way."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, loader=lambda path: Image.open(path).convert("RGB").rotate(180), **options)


class FolderOfProperties(datasets.ImageFolder):
    """A subclass whose samples are computed."""

    @property
    def samples(self) -> Any:
        """The samples, with other labels."""
        return [(path, 10 + label) for path, label in self.kept]

    @samples.setter
    def samples(self, value: Any) -> None:
        self.kept = value


class FolderThatFinds(datasets.ImageFolder):
    """A subclass with classes of its own."""

    def find_classes(self, directory: Any) -> Any:
        """Finds them in the other order."""
        classes, _ = super().find_classes(directory)
        return classes, {name: 5 - number for number, name in enumerate(classes)}


class NegatedFolder(datasets.ImageFolder):
    """A subclass that changes labels."""

    def __getitem__(self, index: int) -> Any:
        image, label = super().__getitem__(index)
        return image, -1 - label


class Twice(transforms.Compose):
    """A subclass that doubles the result."""

    def __call__(self, image: Any) -> Any:
        return super().__call__(image) * 2


class Cifar(datasets.CIFAR10):
    """A subclass that changes nothing."""


class NoisyCifar(datasets.CIFAR10):
    """A subclass that changes labels."""

    def __getitem__(self, index: int) -> Any:
        image, label = super().__getitem__(index)
        return image, label + 1


class Numbers(Dataset[Any]):
    """Numbers, and what was asked for."""

    def __init__(self, count: int = COUNT) -> None:
        self.values = list(range(count))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list | tuple | slice):
            raise TypeError(f"boom: {type(index).__name__}")
        return self.values[index]


class Whole(Numbers):
    """Makes a batch from a list of indices."""

    def __getitem__(self, index: Any) -> Any:
        return (
            torch.tensor([self.values[int(one)] for one in index])
            if isinstance(index, list)
            else super().__getitem__(index)
        )


class Stream(IterableDataset[Any]):
    """An iterable dataset that its workers share."""

    def __init__(self, count: int = 10) -> None:
        self.values, self.epochs = list(range(count)), 0

    def __iter__(self) -> Iterator[Any]:
        self.epochs += 1
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for value in self.values[first::step]:
            yield value, float(torch.rand(()))


class Unsized:
    """A sampler that has no length and draws when it is asked.

    Args:
        count: how many it yields. None: it has no end.
        form: what draws.
    """

    def __init__(self, count: int | None, form: str = "torch") -> None:
        self.count, self.form, self.weights = count, form, [1.0] * 6

    def __iter__(self) -> Iterator[int]:
        number = 0
        while self.count is None or number < self.count:
            number += 1
            if self.form == "torch":
                yield int(torch.randint(6, ()))
            elif self.form == "python":
                yield random.randrange(6)
            elif self.form == "numpy":
                yield np.random.randint(6)  # noqa: NPY002
            else:  # a sampler whose weights the loop changes
                best = self.weights.index(max(self.weights))
                self.weights[best] -= 1
                yield best


class Failing:
    """A sampler that raises."""

    def __init__(self, at: int, error: Any) -> None:
        self.at, self.error = at, error

    def __len__(self) -> int:
        return 8

    def __iter__(self) -> Iterator[int]:
        for number in range(8):
            if number == self.at:
                raise self.error
            yield number


# ---- functions that replace others, made of these


def turned(old: Any) -> Any:
    """Its images, mirrored."""
    return lambda *given, **options: old(*given, **options).transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def negated(old: Any) -> Any:
    """Its images, negated."""
    return lambda *given, **options: old(*given, **options).point(lambda value: 255 - value)


def halved(old: Any) -> Any:
    """Its tensors, halved."""
    return lambda *given, **options: old(*given, **options) / 2


def unchanged(old: Any) -> Any:
    """The same."""
    return lambda *given, **options: old(*given, **options)


def relabelled(old: Any) -> Any:
    """Its samples, with another label."""
    return lambda self, index: (old(self, index)[0], -1)


def shuffled(old: Any) -> Any:
    """The sample after the one that is asked for."""
    return lambda self, index: old(self, (index + 1) % 5)


def first(old: Any) -> Any:
    """The first sample, always."""
    return lambda self, index: old(self, 0)
