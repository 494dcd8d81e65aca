"""Policies on whole files, ImageNet's and odd ones: operations, magnitudes and signs spread over all of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import ModuleType

import aug_mix_ways
import pytest
from PIL import Image
from policy_ways import assert_every_way_is_theirs, ways

from headrace._lowering import lower
from headrace._recipe.arithmetic import tensor_rule
from headrace._recipe.images.pil_tensor import pil_to_tensor
from made_everywhere import assert_made

pytestmark = [pytest.mark.pixels, pytest.mark.slow]

FILES = 47  # at most, of a collection: together they have each operation, magnitude and sign
LARGEST = 65_793  # pixels of an AugMix with Contrast


def opened(files: list[Path]) -> list[Image.Image]:
    """The images of files, as a loader opens them."""
    made = []
    for file in files[:FILES]:
        with Image.open(file) as image:
            made.append(image.convert("RGB"))
    return made


def test_trivial_augment_wide(T: ModuleType, torchvision: ModuleType, files: list[Path]) -> None:
    """623 operations with magnitudes and signs, 13 or 14 for each file."""
    policy, each = T.TrivialAugmentWide(), 47
    recipe = lower(T.Compose([policy, T.PILToTensor()]), native_only=True, may_vary=True)
    for number, image in enumerate(opened(files)):
        sized = (
            recipe if recipe.height else lower(T.Compose([policy, T.PILToTensor()]), size=(image.height, image.width))
        )
        found = itertools.islice(ways(policy, image), number % each, None, each)
        assert assert_every_way_is_theirs(torchvision, policy, sized, image, found) >= 13


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_aug_mix(T: ModuleType, torchvision: ModuleType, files: list[Path], interpolation: str) -> None:
    """Each operation of AugMix at several of ten severities; without Contrast where the image is too large for it."""
    mode, each = torchvision.transforms.InterpolationMode(interpolation), 29
    for number, image in enumerate(opened(files)[number_of(interpolation) :: 2]):
        if tensor_rule.find_rounding(image.height, image.width) is None:
            pytest.skip("torch has another arithmetic on this processor, so AugMix is called in Python")
        options = {"severity": 10, "mixture_width": 1, "chain_depth": 1, "interpolation": mode}
        all_ops = image.width * image.height <= LARGEST
        fill = [None, 90, (1, 250, 33.5)][number % 3]
        policy = aug_mix_ways.policy_of(T, image, all_ops=all_ops, fill=fill, **options)
        recipe = aug_mix_ways.recipe_of(T, policy, image)
        rows, expected = [], []
        for row, name, magnitude in itertools.islice(aug_mix_ways.ways(policy, image), number % each, None, each):
            rows.append(row)
            expected.append(aug_mix_ways.operated(policy, pil_to_tensor(image)[None], name, magnitude)[0])
        assert rows
        assert_made(recipe, image, rows, expected)


def number_of(interpolation: str) -> int:
    """0 or 1: each interpolation gets every other file."""
    return ["bilinear", "nearest"].index(interpolation)
