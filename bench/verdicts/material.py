"""Images, datasets, steps and functions that the situations are built from."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, default_collate

import headrace
from headrace import transforms as T

PHOTOS = sorted((Path(headrace.__file__).parent / "_cli/demo/photos").glob("*.jpg"))
_SAMPLES = 20_000


@functools.cache
def encoded(edge: int, kind: str = "JPEG") -> tuple[bytes, ...]:
    """A dozen photographs, `edge` pixels wide and high."""
    made = []
    for path in PHOTOS[:12]:
        out = BytesIO()
        Image.open(path).convert("RGB").resize((edge, edge)).save(out, kind)
        made.append(out.getvalue())
    return tuple(made)


def recipe(size: int, *more: Any) -> T.Compose:
    return T.Compose([T.Resize((size, size)), *more, T.ToTensor()])


def memory(edge: int, size: int, *more: Any, kind: str = "JPEG") -> headrace.EncodedImages:
    """Images in memory."""
    images = encoded(edge, kind)
    return headrace.EncodedImages([images[i % len(images)] for i in range(_SAMPLES)], None, recipe(size, *more))


def files(folder: Path, edge: int, size: int) -> headrace.ImageFiles:
    """The same images as files."""
    paths = []
    for number, data in enumerate(encoded(edge)):
        path = folder / f"{edge}-{number}.jpg"
        path.write_bytes(data)
        paths.append(str(path))
    return headrace.ImageFiles([paths[i % len(paths)] for i in range(_SAMPLES)], None, recipe(size))


class Own(Dataset[Any]):
    """A dataset that opens its images itself, as in most programs. `pause` is a wait in each sample, in seconds."""

    def __init__(self, edge: int, size: int, pause: float = 0.0) -> None:
        self._images, self._transform, self._pause = encoded(edge), recipe(size), pause

    def __len__(self) -> int:
        return _SAMPLES

    def __getitem__(self, index: int) -> Any:
        time.sleep(self._pause)
        return self._transform(Image.open(BytesIO(self._images[index % len(self._images)])).convert("RGB")), index


def burn(seconds: float) -> None:
    """Uses a core, and holds the interpreter."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Burning:
    """A Python step that computes."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, image: Any) -> Any:
        burn(self.seconds)
        return image


class Sleeping(Burning):
    """A Python step that waits, as for a server."""

    def __call__(self, image: Any) -> Any:
        time.sleep(self.seconds)
        return image


def slow_collate(samples: list[Any]) -> Any:
    burn(0.02)
    return default_collate(samples)


def slow_mixing(batch: Any) -> Any:
    burn(0.02)
    return batch


class SlowSampler(torch.utils.data.Sampler[int]):
    """A sampler that computes each index."""

    def __iter__(self) -> Iterator[int]:
        for index in range(_SAMPLES):
            burn(0.003)
            yield index

    def __len__(self) -> int:
        return _SAMPLES


def slow_label(label: int) -> int:
    burn(0.002)
    return label


def labelled(target_transform: Any = None) -> headrace.EncodedImages:
    """Small images in memory, with labels."""
    images = encoded(64)
    blobs = [images[i % len(images)] for i in range(_SAMPLES)]
    return headrace.EncodedImages(blobs, list(range(_SAMPLES)), recipe(64), target_transform)


def columns() -> headrace.Columns:
    return headrace.Columns({"tokens": np.zeros((_SAMPLES, 64), np.int64)})
