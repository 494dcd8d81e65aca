"""Rotations, affine maps and perspectives of whole files, ImageNet's and odd ones, equal torchvision's functions."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from test_warp_recipes import by_torchvision

from headrace import ImageArray
from headrace._lowering import lower
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.pil_tensor import pil_to_tensor
from made_everywhere import engines
from support import in_host_memory

pytestmark = [pytest.mark.pixels, pytest.mark.slow]

FILTERS = ("nearest", "bilinear", "bicubic")
FILES = 45  # at most, of a collection


def warps(T: Any, filter: str) -> list[Any]:
    mode = T.InterpolationMode(filter)
    return [
        T.RandomRotation(40, mode, fill=(124, 116, 104)),
        T.RandomAffine(20, (0.1, 0.3), (0.7, 1.4), (-15, 15, -5, 20), mode, 200),
        T.RandomPerspective(0.5, 1.0, mode),
    ]


@pytest.mark.parametrize("filter", FILTERS)
def test_files(T: ModuleType, files: list[Path], filter: str) -> None:
    """Each file with one of three warps."""
    some = warps(T, filter)
    for number, file in enumerate(files[:FILES]):
        with Image.open(file) as opened:
            image = opened.convert("RGB")
        transform = some[number % 3]
        if min(image.size) < 2 and number % 3 == 2:  # all four corners are one, which no equation tells apart
            transform = some[0]
        recipe = lower(T.Compose([transform, T.PILToTensor()]), size=(image.height, image.width), native_only=True)
        row = Draws(recipe.columns, number).batch(0, [3], [0])
        expected = pil_to_tensor(by_torchvision(T, transform, recipe.steps[0], row[0].tolist(), image))
        assert torch.equal(reference_sample(image, recipe, row[0].tolist()), expected), file
        table = ImageArray(np.asarray(image)[None]).blob_table()
        for name, engine in engines(recipe):
            flight = engine.submit(table, np.zeros(1, int), row)
            assert engine.wait(flight, 60) and engine.failures(flight) == []
            assert torch.equal(in_host_memory(engine.tensor(flight)[0]), expected), (name, file)
