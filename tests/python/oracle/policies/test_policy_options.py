"""Augmentation policies with every filter and fill: what moves pixels, at each magnitude and sign, on tiny images, too.

Operations that move no pixels use neither; test_policies.py has them at each magnitude.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import pytest
from PIL import Image
from policy_ways import assert_every_way_is_theirs, learned_ways, ways

from headrace._lowering import lower

pytestmark = [pytest.mark.pixels, pytest.mark.slow]

MODES = ("nearest", "bilinear", "bicubic")
FILLS = (None, 200, [7.9], (1, 300, -2))
MOVING = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
TINY = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 16), (16, 1), (3, 2), (2, 3), (3, 3), (4, 3), (5, 8), (9, 13), (16, 15))
each_mode = pytest.mark.parametrize("mode", MODES)
each_fill = pytest.mark.parametrize("fill", range(len(FILLS)))


@pytest.fixture(scope="module")
def drawings(images: list[Image.Image]) -> list[Image.Image]:
    """Images of 1 to 16 pixels and usual ones; every other one is gray."""
    tiny = [images[number % 5].resize(size) for number, size in enumerate(TINY)]
    usual = [images[0].resize((45, 30)), images[7], images[8].resize((2, 60))]
    return [image.convert("L") if number % 2 else image for number, image in enumerate([*tiny, *usual])]


def moving(found: Iterable[tuple[list[float], list[tuple[str, float]]]]) -> Iterator[Any]:
    """The ways that move pixels."""
    return (way for way in found if way[1][0][0] in MOVING)


def fitting(fill: Any, image: Image.Image) -> Any:
    """The fill, or its first number for a gray image."""
    return fill[0] if isinstance(fill, tuple) and image.mode == "L" else fill


def checked(torchvision: Any, T: Any, policy: Any, image: Image.Image, found: Any) -> int:
    steps = T.Compose([policy, T.PILToTensor()])
    recipe = lower(steps, size=(image.height, image.width), channels=len(image.getbands()), native_only=True)
    return assert_every_way_is_theirs(torchvision, policy, recipe, image, found)


@each_mode
@each_fill
def test_trivial_augment_wide(
    T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], mode: str, fill: int
) -> None:
    """Every image with every filter and one fill; v1 takes one half of them, v2 the other."""
    half = drawings[fill + (4 if T.__name__.endswith("v2") else 0) :: 8]
    for image in half:
        policy = T.TrivialAugmentWide(31, T.InterpolationMode(mode), fitting(FILLS[fill], image))
        assert checked(torchvision, T, policy, image, moving(ways(policy, image))) == 5 * 62


@each_mode
def test_rand_augment(T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], mode: str) -> None:
    for magnitude in range(31):
        image = drawings[(7 * magnitude + 3) % len(drawings)]
        policy = T.RandAugment(1, magnitude, 31, T.InterpolationMode(mode), fitting(FILLS[magnitude % 4], image))
        assert checked(torchvision, T, policy, image, moving(ways(policy, image))) == 10


@each_mode
@pytest.mark.parametrize("data", ["CIFAR10", "SVHN"])
def test_auto_augment(
    T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], mode: str, data: str
) -> None:
    for number in (6, 11) if data == "SVHN" else (9, 12):
        image = drawings[number]
        policy = T.AutoAugment(T.AutoAugmentPolicy[data], T.InterpolationMode(mode), fitting(FILLS[number % 4], image))
        assert checked(torchvision, T, policy, image, learned_ways(policy, image)) == 300
