"""timm's policies with constant magnitudes: natively and by the oracle, each operation and sign equals timm's own."""

from __future__ import annotations

import importlib
import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace import DataLoader, EncodedImages
from headrace._lowering import LoweringError, lower
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace._recipe.steps import steps as S
from headrace.transforms import Compose, PILToTensor
from made_everywhere import assert_made
from support import pictures

pytestmark = pytest.mark.slow


class Fed:
    """Replaces the module random inside timm: the sign and the filter are given."""

    def __init__(self, negative: bool, filter: int) -> None:
        self.negative, self.filter = negative, filter

    def random(self) -> float:
        return 1.0 if self.negative else 0.0

    def choice(self, given: Any) -> Any:
        return given[self.filter]


def ways_of(
    policies: ModuleType, monkeypatch: Any, operation: Any, image: Image.Image, ways: int
) -> list[torch.Tensor]:
    """timm's own results, in the order of the ways: signs, then filters."""
    signs, filters = {1: (1, 1), 2: (2, 1), 4: (2, 2)}[ways]
    made = []
    for sign in range(signs):
        for filter in range(filters):
            monkeypatch.setattr(policies, "random", Fed(signs == 2 and sign == 0, filter))
            made.append(pil_to_tensor(operation(image)))
    return made


SPECS = [
    *(f"rand-m{magnitude}-p1-n1-inc{inc}" for magnitude in (0, 3, 7, 9, 10) for inc in (0, 1)),
    "rand-m15-mmax20-p1-n1",
]


@pytest.mark.pixels
@pytest.mark.parametrize("filter", ["random", "one"])
@pytest.mark.parametrize("spec", SPECS)
def test_rand_augment(
    policies: ModuleType, monkeypatch: pytest.MonkeyPatch, images: list[Image.Image], spec: str, filter: str
) -> None:
    given = {"translate_const": 20, "img_mean": (124, 116, 104)}
    policy = policies.rand_augment_transform(spec, given if filter == "random" else {**given, "interpolation": 3})
    # Pillow 13 refuses to posterize to 0 bits.
    policy.ops = [one for one in policy.ops if not one.name.startswith("Posterize") or keeps_bits(policies, one)]
    for image in (images[1], images[4], images[5], images[6], images[8]):
        recipe = lower(Compose([policy, PILToTensor()]), size=image.size[::-1], native_only=True)
        (step,) = recipe.steps
        assert isinstance(step, S.OneOf)
        rows, expected = [], []
        for number, (operation, branch) in enumerate(zip(policy.ops, step.branches, strict=True)):
            (when,) = branch
            assert isinstance(when, S.When) and when.p == 1.0
            inner = when.steps[0] if when.steps else None
            count = len(inner.branches) if isinstance(inner, S.OneOf) else 1
            rows += [[(number + 0.5) / len(policy.ops), 0.5, (way + 0.5) / count] for way in range(count)]
            expected += ways_of(policies, monkeypatch, operation, image, count)
        assert_made(recipe, image, rows, expected)


def keeps_bits(policies: ModuleType, operation: Any) -> bool:
    (bits,) = operation.level_fn(operation.magnitude, {})
    return bits > 0


@pytest.mark.pixels
@pytest.mark.parametrize("spec", ["original", "originalr", "v0r"])
def test_auto_augment(policies: ModuleType, spec: str) -> None:
    """Through a loader; the draws of each part are those of the oracle."""
    policy = policies.auto_augment_transform(spec)
    if any(not keeps_bits(policies, one) for some in policy.policy for one in some if one.name.startswith("Poster")):
        with pytest.raises(LoweringError, match="bits"):
            lower(Compose([policy, PILToTensor()]), size=(30, 40), native_only=True)
        return
    crop = importlib.import_module("headrace.transforms").CenterCrop(40)
    loader = DataLoader(EncodedImages(pictures(96), range(96), Compose([crop, policy, PILToTensor()])), 16, seed=3)
    assert "native" in str(loader.explain()) and loader.native
    assert not any(line.runs == "Python" for line in loader.explain().lines if "AutoAugment" in line.part)
    assert loader.verify(6).batches == 6


def test_how_often_each_operation_is_done(policies: ModuleType) -> None:
    policy = policies.rand_augment_transform("rand-m9-p0.3-n1-inc1")
    recipe = lower(Compose([policy, PILToTensor()]), size=(30, 40), native_only=True)
    count, (step,) = 60_000, recipe.steps
    assert isinstance(step, S.OneOf)
    when = step.branches[0][0]
    assert isinstance(when, S.When)
    draws = Draws(recipe.columns, 8).batch(0, np.arange(count), np.zeros(count, np.int64))
    chosen = np.searchsorted(np.array(step.bounds), draws[:, step.draw], side="right")
    done = draws[:, when.draw] < when.p
    ours = np.array([(done & (chosen == number)).mean() for number in range(15)])
    theirs, seen = np.zeros(15), dict[Any, int]()
    for number, operation in enumerate(policy.ops):
        operation.aug_fn = lambda image, *arguments, number=number, **options: seen.__setitem__("number", number)
    state = random.getstate(), np.random.get_state()  # noqa: NPY002  # timm draws from both
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    for _ in range(6000):
        seen.clear()
        policy(Image.new("RGB", (4, 4)))
        if seen:
            theirs[seen["number"]] += 1 / 6000
    random.setstate(state[0])
    np.random.set_state(state[1])  # noqa: NPY002
    assert ours == pytest.approx(np.full(15, 0.02), abs=0.003)
    assert theirs == pytest.approx(np.full(15, 0.02), abs=0.012)


def test_refusals(policies: ModuleType) -> None:
    class Mine(policies.AugmentOp):  # type: ignore[name-defined]
        pass

    rand = policies.rand_augment_transform
    own = rand("rand-m9")
    own.ops[2] = Mine("Invert")
    for policy, message in (
        (rand("rand-m9-tweights-n4"), r"chooses 4 different ones of 15 operations, which has no native twin"),
        (own, r"has an operation of the class Mine, which is not timm's AugmentOp"),
        (rand("rand-m9", {"interpolation": Image.Resampling.LANCZOS}), r"moves pixels with the filters \['lanczos'\]"),
    ):
        with pytest.raises(LoweringError, match=message):
            lower(Compose([policy, PILToTensor()]), size=(30, 40), native_only=True)
    with pytest.raises(LoweringError, match=r"TranslateXRel moves .*the size of the image is not known here"):
        lower(Compose([rand("rand-m9"), PILToTensor()]), native_only=True)
    with pytest.raises(LoweringError, match=r"'fill' does not match .*3 != 1"):
        lower(Compose([rand("rand-m9"), PILToTensor()]), size=(30, 40), channels=1, native_only=True)
