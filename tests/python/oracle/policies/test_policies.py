"""Augmentation policies: each operation at each magnitude and sign equals torchvision's, natively and by the oracle."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from PIL import Image
from policy_ways import assert_every_way_is_theirs, learned_ways, ways

from headrace._lowering import lower
from headrace._recipe.steps.recipe import Recipe

pytestmark = [pytest.mark.pixels, pytest.mark.slow]


@pytest.fixture(scope="module")
def drawings(images: list[Image.Image]) -> list[Image.Image]:
    """RGB and gray images: usual, tiny, long, of few colours."""
    gray = [images[i].convert("L") for i in (0, 5, 6, 7)]
    return [images[i] for i in (1, 4, 5, 6, 7, 8)] + [*gray, Image.new("RGB", (16, 16), (200, 0, 55))]


def recipe_of(T: ModuleType, policy: Any, image: Image.Image) -> Recipe:
    channels = len(image.getbands())
    steps = T.Compose([policy, T.PILToTensor()])
    return lower(steps, size=(image.height, image.width), channels=channels, native_only=True)


@pytest.mark.parametrize("magnitude", range(31))
def test_rand_augment(T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], magnitude: int) -> None:
    policy = T.RandAugment(1, magnitude)
    for image in drawings:
        recipe = recipe_of(T, policy, image)
        assert assert_every_way_is_theirs(torchvision, policy, recipe, image, ways(policy, image)) == 23


@pytest.mark.parametrize("bins", [31, 10])
@pytest.mark.parametrize("number", range(11))
def test_trivial_augment_wide(
    T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], number: int, bins: int
) -> None:
    policy, image = T.TrivialAugmentWide(bins), drawings[number]
    recipe = recipe_of(T, policy, image)
    made = assert_every_way_is_theirs(torchvision, policy, recipe, image, ways(policy, image))
    assert made == 9 * 2 * bins + 2 * bins + 3


@pytest.mark.parametrize("data", ["IMAGENET", "CIFAR10", "SVHN"])
def test_auto_augment(T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], data: str) -> None:
    policy = T.AutoAugment(T.AutoAugmentPolicy[data])
    for image in drawings:
        recipe = recipe_of(T, policy, image)
        assert assert_every_way_is_theirs(torchvision, policy, recipe, image, learned_ways(policy, image)) == 300
