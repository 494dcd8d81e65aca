"""Files of images with their masks, and datasets of several fields of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

from headrace import DataLoader, EncodedImages, Fields
from headrace import transforms as T
from support import TENSOR, pictures, same

COUNT = 24
GEOMETRY = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip()])
MASK = T.Compose([T.PILToTensor()])


@dataclass(frozen=True)
class Encoded:
    """`pictures`, and for each a mask of 21 classes: gray levels, palette indices, both of one mask."""

    images: tuple[bytes, ...]
    gray: tuple[bytes, ...]
    palette: tuple[bytes, ...]


@cache
def encoded(count: int = COUNT) -> Encoded:
    rng = np.random.default_rng(0)
    gray, palette = [], []
    for data in pictures(count):
        with Image.open(BytesIO(data)) as image:
            width, height = image.size
        mask = Image.fromarray(rng.integers(0, 21, (height, width), np.uint8))
        gray.append(png(mask))
        mask.putpalette(rng.permutation(768).astype(np.uint8).tobytes())
        palette.append(png(mask))
    return Encoded(pictures(count), tuple(gray), tuple(palette))


def png(image: Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def everything(**changed: Any) -> Fields:
    """Images with labels, masks of both kinds, another image with a transform of its own, rows, columns and values."""
    files = encoded()
    jitter = T.Compose([T.ColorJitter(0.3, 0.3), *TENSOR, T.RandomErasing(0.5)])
    blurred = T.Compose([T.RandomGrayscale(0.5), T.GaussianBlur(3), T.RandomAffine(20, (0.1, 0.2)), T.ToTensor()])
    rng = np.random.default_rng(1)
    fields = {
        "image": EncodedImages(files.images, [*range(COUNT)], jitter),
        "mask": EncodedImages(files.gray, transform=MASK, mode="L"),
        "indices": EncodedImages(files.palette, transform=MASK, mode="P"),
        "other": EncodedImages(files.images, transform=blurred),
        "tokens": rng.integers(0, 999, (COUNT, 7)),
        "text": [f"number {i}" for i in range(COUNT)],
        "number": [i / 3 for i in range(COUNT)],
    }
    options: dict[str, Any] = {"geometry": GEOMETRY, "masks": ["mask", "indices"]}
    return Fields({**fields, **changed}, **options)


def plain(size: int = 32) -> T.Compose:
    return T.Compose([T.Resize((size, size)), T.ToTensor()])


def assert_equal(ours: Any, theirs: Any) -> int:
    """Asserts that batches are equal, to the bit and in type, and returns their number."""
    count = 0
    for a, b in itertools.zip_longest(ours, theirs):
        assert same(a, b), f"batch {count}: {differing(a, b)}"
        count += 1
    return count


def assert_two_epochs(loader: DataLoader[Any]) -> list[list[Any]]:
    """Asserts that two epochs equal the oracle's and differ from each other; returns the oracle's batches of both."""
    epochs: list[list[Any]] = []
    for _ in range(2):
        epochs.append(list(loader.reference()))
        assert assert_equal(loader, epochs[-1]) == len(loader)
    assert not same(*epochs)
    return epochs


def differing(a: Any, b: Any) -> str:
    if not isinstance(a, dict) or not isinstance(b, dict):
        return "it differs"
    return ", ".join(name for name in a if not same(a[name], b.get(name)))
