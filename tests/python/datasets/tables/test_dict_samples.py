"""Hugging Face datasets as they are: torch's DataLoader delivers their dicts, with deferred images; explain() names the
native way, which Samples has for dicts, too."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from table_samples import SMALL, hugging_face, turned

import datasets
from headrace import DataLoader, Fields, from_hf
from support import assert_same, pictures


def pixel_values(examples: dict[str, Any]) -> dict[str, Any]:
    """The function of most training scripts."""
    examples["pixel_values"] = [SMALL(image.convert("RGB")) for image in examples["image"]]
    del examples["image"]
    return examples


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_a_function_of_the_dataset_gets_deferred_images(workers: int) -> None:
    data = hugging_face(12).with_transform(pixel_values)
    loader = DataLoader(data, 5, num_workers=workers)
    assert_same(loader, list(torch.utils.data.DataLoader(data, 5)))
    assert loader.route == "deferred"
    # `datasets` loads each image when it decodes it; its pixels are made later all the same.
    said = str(loader.stats())
    assert "10 of 12 images natively" in said
    assert "; by Pillow: 1 PNG with chunks of other kinds, 1 JPEG of mode CMYK" in said
    assert "from_hf(dataset, transform=...) makes it native" in str(loader.explain())


def test_images_that_are_turned_are_deferred_too() -> None:
    features = datasets.Features({"image": datasets.Image()})
    files = [{"bytes": turned(orientation), "path": None} for orientation in range(9)]
    data = datasets.Dataset.from_dict({"image": files}, features=features).with_transform(pixel_values)
    loader = DataLoader(data, 9)
    assert_same(loader, list(torch.utils.data.DataLoader(data, 9)))
    assert "9 of 9 images natively" in str(loader.stats())


def test_without_a_function_the_remedy_is_named() -> None:
    loader = DataLoader(hugging_face(), 4)
    assert not loader.native
    assert "dicts of decoded columns; headrace.from_hf" in str(loader.explain())


def test_dicts_by_samples() -> None:
    data = hugging_face(12).shuffle(seed=1, keep_in_memory=True)
    fields = {"pixel_values": from_hf(data, label=None, transform=SMALL), "label": data["label"][:]}
    loader = DataLoader(Fields(fields), 5, num_workers=1)
    assert loader.native
    wanted = list(torch.utils.data.DataLoader(data.with_transform(pixel_values), 5))
    assert_same(({**batch} for batch in loader), [{key: one[key] for key in fields} for one in wanted])
    assert len(pictures(12)) == len(data)
