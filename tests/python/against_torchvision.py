"""Compares the oracle with torchvision itself, run on the same draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace._lowering import lower
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps.recipe import Recipe
from headrace._recipe.steps.steps import RandomCrop
from torchvision_feed import Feeder

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def rows(recipe: Recipe, count: int) -> np.ndarray:
    drawn = Draws(recipe.columns, 17).batch(1, np.arange(count), np.zeros(count, dtype=np.int64))
    for step in recipe.steps:
        if isinstance(step, RandomCrop):  # torchvision draws one number where only one edge has a choice
            drawn[1::2, step.draw + 1] = drawn[1::2, step.draw]
    return drawn


def in_common(error: ValueError) -> str:
    """The message without the words that only v2 has."""
    return str(error).replace("padded ", "").removesuffix(".")


def assert_equal_on(images: list[Image.Image], feeder: Feeder, transform: Any, count: int = 3) -> None:
    """Asserts that the oracle and torchvision make the same tensors, or refuse an image with the same message."""
    recipe = lower(transform)
    for image in images:
        for row in rows(recipe, count).tolist():
            try:
                expected = feeder(transform, image, recipe, row)
            except ValueError as error:
                with pytest.raises(ValueError) as raised:
                    reference_sample(image, recipe, row)
                assert in_common(raised.value) == in_common(error)
                continue
            made = reference_sample(image, recipe, row)
            assert made.dtype == expected.dtype == recipe.dtype
            assert made.shape == (recipe.channels, recipe.height, recipe.width) and made.is_contiguous()
            assert torch.equal(made, expected)
