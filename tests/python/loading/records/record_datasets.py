"""Datasets whose code headrace does not know: of small JPEGs, opened and transformed in ways that records can express,
and in ways that they cannot."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, get_worker_info

COUNT = 10


def write_photographs(folder: Path) -> list[Path]:
    """Writes JPEGs of several sizes, one of them gray."""
    draws = np.random.default_rng(7)
    paths = []
    for number in range(COUNT):
        height, width = (int(edge) for edge in draws.integers(70, 110, 2))
        coarse = Image.fromarray(draws.integers(0, 255, (9, 11, 3), dtype=np.uint8))
        image = coarse.resize((width, height), Image.Resampling.BICUBIC)
        paths.append(folder / f"{number}.jpg")
        (image.convert("L") if number == 3 else image).save(paths[-1], quality=80)
    return paths


def write_damaged(path: Path, damaged: Path) -> Path:
    """Writes a photograph without some of its compressed data; returns where."""
    data = bytearray(path.read_bytes())
    scan = data.index(b"\xff\xda") + 14
    del data[scan + 100 : scan + 400]
    damaged.write_bytes(data)
    return damaged


class Labelled(Dataset[Any]):
    """(transformed image, index, a dict): what most programs have."""

    def __init__(self, paths: list[Path], transform: Callable[[Any], Any]) -> None:
        self.paths, self.transform = paths, transform

    def __len__(self) -> int:
        return len(self.paths)

    def open(self, index: int) -> Any:
        return Image.open(self.paths[index]).convert("RGB")

    def __getitem__(self, index: int) -> Any:
        image = self.transform(self.open(index))
        return image, index, {"name": self.paths[index].name, "weight": torch.tensor([index, random.random()])}


class InMemory(Labelled):
    """Files whose bytes only the worker has."""

    def open(self, index: int) -> Any:
        return Image.open(io.BytesIO(self.paths[index].read_bytes())).convert("RGB")


class Decoded(Labelled):
    """Tensors by torchvision's decoder."""

    def open(self, index: int) -> Any:
        from torchvision.io import ImageReadMode, decode_image, read_file

        return decode_image(read_file(str(self.paths[index])), ImageReadMode.RGB)


class Views(Labelled):
    """Two views of each file, and the first one again."""

    def __getitem__(self, index: int) -> Any:
        image = self.open(index)
        first = self.transform(image)
        return {"views": [first, self.transform(image)], "again": first}


class Crops(Labelled):
    """Two large crops of each image and four small ones, as DINO's."""

    def __init__(self, paths: list[Path], transform: Any) -> None:
        from torchvision import transforms

        super().__init__(paths, transform)
        small, normalize = transforms.RandomResizedCrop(24, (0.05, 0.4)), transforms.Normalize([0.5] * 3, [0.2] * 3)
        self.small = transforms.Compose([small, transforms.ToTensor(), normalize])

    def __getitem__(self, index: int) -> Any:
        image = self.open(index)
        return [self.transform(image) for _ in range(2)] + [self.small(image) for _ in range(4)]


class Looking(Labelled):
    """Looks at the values of each third sample."""

    def __getitem__(self, index: int) -> Any:
        image, *rest = super().__getitem__(index)
        return (image + 0 * image.mean() if index % 3 == 0 else image), *rest


class Keeping(Labelled):
    """Keeps its tensors, and changes them in place in later epochs."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.kept: dict[int, Any] = {}

    def __getitem__(self, index: int) -> Any:
        if index in self.kept:
            self.kept[index][0][0] += 1
        return self.kept.setdefault(index, super().__getitem__(index))


class Stateful(Labelled):
    """A dataset with a state."""

    made = 0

    def __getitem__(self, index: int) -> Any:
        self.made += 1
        return *super().__getitem__(index), self.made

    def state_dict(self) -> dict[str, int]:
        return {"made": self.made}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.made = state["made"]


class Stream(IterableDataset[Any]):
    """The samples of `Labelled` one after another, those of each worker."""

    def __init__(self, paths: list[Path], transform: Callable[[Any], Any]) -> None:
        self.samples = Labelled(paths, transform)

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, len(self.samples), step):
            yield self.samples[index]
