"""timm's policies on whole files, ImageNet's and odd ones: operations, filters and signs spread over all of them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image
from timm_feed import Fed

from headrace._lowering import lower
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace.transforms import Compose, PILToTensor
from made_everywhere import assert_made

pytestmark = [pytest.mark.pixels, pytest.mark.slow]

FILES = 29  # at most, of a collection: together they have each way
HPARAMS = {"translate_const": 20, "img_mean": (124, 116, 104)}
DEVIATES = (-4.1, -0.37, 0.5, 2.0)
EACH = 29  # of the ways, one file has every 29th


@pytest.mark.parametrize("spec", ["rand-m9-mstd0.5-p1-n1-inc1", "rand-m6-mstd1-p1-n1"])
def test_rand_augment(policies: ModuleType, monkeypatch: pytest.MonkeyPatch, files: list[Path], spec: str) -> None:
    """Each of 15 operations at four deviates, both signs and both filters: 8 or 9 of these for each file."""
    policy = policies.rand_augment_transform(spec, dict(HPARAMS))
    ways = [
        (number, operation, deviate, negative, filter)
        for number, operation in enumerate(policy.ops)
        for deviate in DEVIATES
        for negative in (True, False)
        for filter in ((0, 1) if isinstance(operation.kwargs["resample"], tuple) else (0,))
    ]
    for file_number, file in enumerate(files[:FILES]):
        with Image.open(file) as opened:
            image = opened.convert("RGB")
        recipe = lower(Compose([policy, PILToTensor()]), size=image.size[::-1], native_only=True)
        drawn, expected = [], []
        for number, operation, deviate, negative, filter in ways[file_number % EACH :: EACH]:
            filters = operation.kwargs["resample"]
            count = len(filters) if isinstance(filters, tuple) else 1
            way = (filter + 0.5) / count / 2 + (0 if negative else 0.5)
            monkeypatch.setattr(policies, "random", Fed(deviate, negative, filter))
            try:
                expected.append(pil_to_tensor(operation(image)))
            except ValueError as error:  # Pillow 13 refuses to posterize to 0 bits; test_timm_magnitudes.py has that
                assert "bits must be" in str(error)
                continue
            drawn.append([(number + 0.5) / len(policy.ops), 0.5, way, deviate])
        assert len(drawn) >= 4
        rows = Draws(recipe.columns, 0).add_computed(np.array(drawn)).tolist()
        assert_made(recipe, image, rows, expected)
