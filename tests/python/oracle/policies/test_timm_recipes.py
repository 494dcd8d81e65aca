"""timm's published training recipes run natively, and choices by weight are distributed as numpy's."""

from __future__ import annotations

import importlib
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

from headrace import DataLoader, Fields, ImageArray
from headrace._lowering import lower
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace._recipe.steps import steps as S
from headrace.transforms import Compose, PILToTensor
from made_everywhere import assert_made

pytestmark = pytest.mark.slow


RECIPES = {
    "randaugment": {"auto_augment": "rand-m9-mstd0.5-inc1", "re_prob": 0.25, "re_mode": "pixel"},
    "deit3": {"auto_augment": "3a", "color_jitter": 0.3, "interpolation": "bicubic"},
    "random interpolation": {"auto_augment": "rand-m7-mstd0.5-inc1", "interpolation": "random", "re_prob": 0.3},
    "by weight": {"auto_augment": "rand-m9-mstd1-inc1-tweights", "re_prob": 0.5, "re_mode": "rand", "re_count": 3},
    "3a by weight": {"auto_augment": "rand-m6-mstd0.5-inc1-t3aw"},
    "3a uniform": {"auto_augment": "rand-m6-mstd101-t3a"},
    "original": {"auto_augment": "originalr-mstd0.5", "re_prob": 0.25, "re_mode": "pixel"},
}


def without_pillows_error(transform: object) -> None:
    """Leaves out what Pillow 13 refuses, and timm with it: to posterize to 0 bits."""
    for step in getattr(transform, "transforms", ()):
        if hasattr(step, "policy"):
            for some in step.policy:
                some[:] = [one for one in some if not one.name.startswith("Posterize")]
        for one in getattr(step, "ops", ()):
            if one.name == "PosterizeIncreasing":
                one.magnitude_max = 9.9


@pytest.mark.pixels
@pytest.mark.parametrize("name", RECIPES)
def test_recipe(timm: ModuleType, name: str) -> None:
    transform = timm.create_transform(input_size=48, is_training=True, **RECIPES[name])
    without_pillows_error(transform)
    lower(transform, native_only=True)
    pixels = np.random.default_rng(1).integers(0, 256, (64, 60, 72, 3), np.uint8)
    dataset = ImageArray(pixels, list(range(64)), transform=transform)
    loader = DataLoader(dataset, 16, shuffle=True, seed=5)
    assert loader.native and not any("called" in line.part for line in loader.explain().lines)
    assert loader.verify(4).batches == 4


@pytest.mark.pixels
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("size", [(1, 1), (2, 5), (40, 1), (33, 47)], ids=str)
def test_blurs_are_pillows(mode: str, size: tuple[Any, ...]) -> None:
    """The native blur, at many radii, and the oracle's."""
    recipe = lower(Compose([PILToTensor()]), size=size, channels=3 if mode == "RGB" else 1, native_only=True)
    shape = (*size, 3) if mode == "RGB" else size
    image = Image.fromarray(np.random.default_rng(2).integers(0, 256, shape, np.uint8))
    for radius in (1e-6, 0.1, 0.3, 0.577, 0.8, 1.0, 1.41421356, 1.7, 2.0, 3.3, 12.0):
        assert_made(
            replace(recipe, steps=(S.PillowBlur(radius),)),
            image,
            [[]],
            [pil_to_tensor(image.filter(ImageFilter.GaussianBlur(radius)))],
        )


def test_blur_of_timm(timm: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """GaussianBlur and GaussianBlurRand through their columns: radii are timm's."""
    policies = importlib.import_module("timm.data.auto_augment")
    for name, most in (("GaussianBlur", None), ("GaussianBlurRand", None), ("GaussianBlurRand", 20)):
        for std in (0.0, 2.0):
            hparams = {"magnitude_std": std, "magnitude_max": most}
            policy = policies.RandAugment([policies.AugmentOp(name, 1.0, 8, hparams)], 1)
            recipe = lower(Compose([policy, PILToTensor()]), size=(9, 9), native_only=True)
            choice: Any = recipe.steps[0]
            (step,) = choice.branches[0][0].steps
            if not isinstance(step.radius, S.Drawn):
                assert step.radius == policy.ops[0].level_fn(8, {})[0]
                continue
            count = 20_000
            draws = Draws(recipe.columns, 1).batch(0, np.arange(count), np.zeros(count, np.int64))
            ours, theirs = draws[:, step.radius.column], list[float]()
            monkeypatch.setattr(policies.ImageFilter, "GaussianBlur", lambda radius, to=theirs: to.append(radius))
            image = type("Image", (), {"filter": lambda self, given: self})()
            for _ in range(count):
                policy.ops[0](image)
            monkeypatch.undo()
            at = np.sort(np.concatenate([ours, theirs]))
            below = [np.searchsorted(np.sort(one), at, side="right") / count for one in (ours, theirs)]
            assert np.abs(below[0] - below[1]).max() < 2.23 * (2 / count) ** 0.5


def test_choices_by_weight_are_numpys(timm: ModuleType) -> None:
    """Ordered pairs of different operations: their frequencies, and those of a choice with repetition differ."""
    policies = importlib.import_module("timm.data.auto_augment")
    policy = policies.rand_augment_transform("rand-m9-p1-inc1-t3aw-n2")
    recipe = lower(Compose([policy, PILToTensor()]), size=(9, 9), native_only=True)
    (step,) = recipe.steps
    assert isinstance(step, S.OneOf)
    count, kinds = 60_000, len(policy.ops)
    draws = Draws(recipe.columns, 1).batch(0, np.arange(count), np.zeros(count, np.int64))
    first = np.searchsorted(step.bounds, draws[:, step.draw], side="right")
    ours = np.zeros((kinds, kinds))
    for one, row in zip(first, draws, strict=True):
        inner = step.branches[one][1]
        assert isinstance(inner, S.OneOf)
        place = np.searchsorted(inner.bounds, row[inner.draw], side="right")
        ours[one, [other for other in range(kinds) if other != one][place]] += 1 / count
    theirs = np.zeros((kinds, kinds))
    rng = np.random.RandomState(3)
    for _ in range(count // 4):
        theirs[tuple(rng.choice(kinds, 2, replace=False, p=policy.choice_weights))] += 4 / count
    p = policy.choice_weights
    expected = np.array([[0.0 if i == j else p[i] * p[j] / (1 - p[i]) for j in range(kinds)] for i in range(kinds)])
    assert np.abs(ours - expected).max() < 0.005 and np.abs(theirs - expected).max() < 0.009
    assert ours.diagonal().sum() == 0
    names = [one.name for one in policy.ops]
    assert all(step.bounds[i] < step.bounds[i + 1] for i in range(kinds - 1)) and len(names) == len(set(names))
    assert sum(len(branch) for branch in step.branches) == 2 * kinds


@pytest.mark.pixels
def test_fields_draw_their_own_magnitudes(timm: ModuleType) -> None:
    """Two image fields of a sample: the columns of the second are moved after those of the first."""
    policies = importlib.import_module("timm.data.auto_augment")
    pixels = np.random.default_rng(4).integers(0, 256, (32, 20, 24, 3), np.uint8)
    fields = {}
    for name, spec in (("a", "rand-m5-mstd1-n1"), ("b", "rand-m5-mstd2-inc1-t3a")):
        policy = policies.rand_augment_transform(spec)
        transform = Compose([policy, PILToTensor()])
        without_pillows_error(transform)
        policy.ops = [one for one in policy.ops if one.name != "Posterize"]
        fields[name] = ImageArray(pixels, list(range(32)), transform=transform)
    loader = DataLoader(Fields(fields), 8, seed=2)
    assert loader.native
    assert loader.verify(4).batches == 4
