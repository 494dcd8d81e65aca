"""Hugging Face datasets of small pictures, and a comparison with what they decode."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import torch
from PIL import Image

import datasets
from headrace import DataLoader
from headrace import transforms as T
from support import pictures

SMALL = T.Compose([T.Resize((20, 24)), T.ToTensor()])
FEATURES = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list("abcdefg"))})


def hugging_face(count: int = 24, **columns: Any) -> datasets.Dataset:
    """`pictures` as a dataset in memory, with their numbers modulo 7 as labels."""
    images = [{"bytes": data, "path": f"{i}.jpg"} for i, data in enumerate(pictures(count))]
    features = datasets.Features(FEATURES)
    made = datasets.Dataset.from_dict({"image": images, "label": [i % 7 for i in range(count)]}, features=features)
    for name, values in columns.items():
        made = made.add_column(name, values)
    return made


def turned(orientation: int, xmp: str = "", format: str = "JPEG") -> bytes:
    """A picture with an EXIF orientation (0: none), or with an XMP packet."""
    with Image.open(BytesIO(pictures()[0])) as image:
        exif = Image.Exif()
        if orientation:
            exif[0x112] = orientation
        out = BytesIO()
        options = {"xmp": xmp.encode()} if xmp else {}
        image.convert("RGB").save(out, format, exif=exif.tobytes() if orientation else b"", **options)
    return out.getvalue()


def assert_decoded(
    source: Any, dataset: datasets.Dataset, label: Callable[[dict[str, Any]], Any] | None = None, mode: str = "RGB"
) -> None:
    """Asserts that the native batches are `dataset[i]["image"].convert(mode)` after `SMALL`, with these labels."""
    loader = DataLoader(source, 5, num_workers=2)
    assert loader.native, loader.explain()
    images, labels = [], []
    for batch in loader:
        images += list(batch if label is None else batch[0])
        labels += [] if label is None else list(batch[1])
    assert len(images) == len(dataset)
    for number, image in enumerate(images):
        row = dataset[number]
        assert torch.equal(image, SMALL(row["image"].convert(mode))), number
        if label is not None:
            assert labels[number] == label(row)
