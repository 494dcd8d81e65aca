"""Augmentation policies: what they are lowered to, with which probabilities, and which are refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace.lowering import LoweringError, lower
from headrace.randomness.draws import Draws
from headrace.recipe import steps as S

SIZE = (30, 40)
DRAWS = 100_000


def recipe_of(T, policy: Any, size: tuple[int, int] | None = SIZE, channels: int = 3):
    end = [T.PILToTensor()] if size else [T.CenterCrop(8), T.PILToTensor()]
    return lower(T.Compose([policy, *end]), size=size, channels=channels, native_only=True)


def test_rand_augment(T):
    recipe = recipe_of(T, T.RandAugment(2, 9))
    first, second = recipe.steps
    assert (first.draw, second.draw, len(recipe.columns)) == (0, 2, 4)
    assert first.branches[0] == () and len(first.branches) == 14 and first.bounds[-1] == 1.0
    ((shear,),) = (first.branches[1],)
    assert isinstance(shear, S.OneOf) and shear.draw == 1 and shear.bounds == (0.5, 1.0)
    assert [one[0].matrix[1] for one in shear.branches] == pytest.approx([-0.09, 0.09])
    assert [one[0].matrix[2] for one in first.branches[3][0].branches] == [5.0, -5.0]  # 9/30 of 150/331 of 40 pixels
    assert first.branches[10] == (S.Posterize(7),) and first.branches[12] == (S.Autocontrast(),)


def test_what_explain_says(T):
    steps = [T.CenterCrop(20), T.RandAugment(), T.TrivialAugmentWide(), T.AutoAugment(), T.PILToTensor()]
    said = [how for _, how in lower(T.Compose(steps)).names[1:4]]
    assert said[0].startswith("native 2 times one of 14 operations (Identity, ShearX, ")
    assert said[0].endswith("Equalize), at magnitude 9 of 31")
    assert said[1].startswith("native one of 14 operations (") and said[1].endswith(", at one of 31 magnitudes")
    assert said[2] == "native one of 25 pairs of operations, the policy for imagenet"


def test_a_gray_image_has_no_saturation(T):
    every = recipe_of(T, T.RandAugment(1), channels=1).steps[0].branches
    assert every[7][0].branches == ((), ())  # Color
    assert isinstance(every[6][0].branches[0][0], S.Brightness)


def test_magnitudes_that_depend_on_the_size(T):
    needs = [T.RandAugment(), T.AutoAugment(T.AutoAugmentPolicy.CIFAR10), T.AutoAugment(T.AutoAugmentPolicy.SVHN)]
    for policy in needs:
        with pytest.raises(LoweringError, match=r"Translate[XY] moves .* the size of the image is not known"):
            recipe_of(T, policy, None)
        assert recipe_of(T, policy, SIZE) != recipe_of(T, policy, (31, 40))
    for policy in (T.TrivialAugmentWide(), T.AutoAugment()):
        assert recipe_of(T, policy, None).steps[:-1] == recipe_of(T, policy, SIZE).steps


def test_refusals(torchvision, T):
    class Mine(T.RandAugment):
        def _augmentation_space(self, *arguments):
            return {"Invert": (torch.tensor(0.0), False)}

    with pytest.raises(LoweringError, match=r"is a subclass that may behave differently from RandAugment"):
        recipe_of(T, Mine())
    for policy, message in (
        (T.RandAugment(magnitude=31), r"has no magnitude number 31: there are 31"),
        (T.RandAugment(fill=(1, 2)), r"'fill' does not match .*2 != 3"),
        (
            T.RandAugment(interpolation=T.InterpolationMode.LANCZOS),
            r"filter lanczos, which Pillow supports for",
        ),
        (T.TrivialAugmentWide(0), r"has no magnitude number 0: there are 0"),
    ):
        with pytest.raises(LoweringError, match=message):
            recipe_of(T, policy)
    replaced = T.TrivialAugmentWide()
    replaced._augmentation_space = lambda *arguments: {}
    with pytest.raises(LoweringError, match="has forward hooks or a replaced method"):
        recipe_of(T, replaced)
    with pytest.raises(LoweringError, match=r"works on a tensor here, .*put it before PILToTensor"):
        lower(T.Compose([T.CenterCrop(8), T.PILToTensor(), T.AutoAugment()]), native_only=True)


def test_an_operation_of_ones_own_is_refused(torchvision, monkeypatch):
    T = torchvision.transforms.v2
    space = {"Swirl": (lambda bins, height, width: None, False)}
    monkeypatch.setattr(T.RandAugment, "_AUGMENTATION_SPACE", space)
    with pytest.raises(LoweringError, match="has an operation Swirl that has no native twin"):
        recipe_of(T, T.RandAugment())


def test_no_operation_at_all(T):
    recipe = recipe_of(T, T.RandAugment(0))
    assert recipe.steps == () and recipe.names[0][1] == "nothing"


def chosen(step: S.OneOf, draws: np.ndarray) -> np.ndarray:
    """The branch that each sample takes."""
    return np.searchsorted(np.array(step.bounds), draws[:, step.draw], side="right")


def ways_taken(recipe, count: int = DRAWS) -> Counter:
    """How often a policy goes each way: (operation's number, way's number)."""
    step = recipe.steps[0]
    draws = Draws(recipe.columns, 11).batch(0, np.arange(count), np.zeros(count, np.int64))
    first, taken = chosen(step, draws), Counter()
    for number, branch in enumerate(step.branches):
        inner = branch[0] if branch and isinstance(branch[0], S.OneOf) else None
        rows = draws[first == number]
        numbers = chosen(inner, rows) if inner else np.zeros(len(rows), int)
        taken.update((number, int(way)) for way in numbers)
    return taken


def distance(counts: Counter, shares: dict[Any, float]) -> float:
    """Pearson's statistic, in standard deviations above its mean."""
    total = sum(counts.values())
    assert counts.keys() <= shares.keys() and sum(shares.values()) == pytest.approx(1)
    square = sum((counts[key] - total * share) ** 2 / (total * share) for key, share in shares.items())
    freedom = len(shares) - 1
    return (square - freedom) / (2 * freedom) ** 0.5


def shares_of(ways: list[int]) -> dict[Any, float]:
    return {(i, j): 1 / len(ways) / count for i, count in enumerate(ways) for j in range(count)}


RAND = [1, *[2] * 9, 1, 1, 1, 1]
TRIVIAL = [1, *[62] * 9, 31, 31, 1, 1]


@pytest.mark.slow
def test_each_way_is_as_probable_as_in_torchvision(T, monkeypatch):
    """Our draws and torchvision's own fit the same probabilities; slightly different ones fit neither."""
    for policy, ways in ((T.RandAugment(1), RAND), (T.TrivialAugmentWide(), TRIVIAL)):
        shares = shares_of(ways)
        ours = ways_taken(recipe_of(T, policy))
        assert sum(ours.values()) == DRAWS and distance(ours, shares) < 4
        wrong = {key: share * (1.1 if key[1] % 2 else 0.9) for key, share in shares.items() if ways[key[0]] % 2 == 0}
        assert distance(ours, {**shares, **wrong}) > 10
        assert distance(ours, shares_of([*ways[:-2], ways[-2] + 1, 1])) > 10
    signs = Counter()
    theirs = T.RandAugment(1)
    seen = recorded(T, theirs, monkeypatch)
    torch.manual_seed(2)
    for _ in range(6000):
        theirs(Image.new("RGB", (40, 30)))
    names = list(theirs._AUGMENTATION_SPACE if T.__name__.endswith("v2") else theirs._augmentation_space(31, SIZE))
    signs.update((names.index(name), int(magnitude > 0 and RAND[names.index(name)] == 2)) for name, magnitude in seen)
    assert distance(signs, shares_of(RAND)) < 4


def recorded(T, policy: Any, monkeypatch) -> list[tuple[str, float]]:
    """The operations that a policy of torchvision does from now on, instead of doing them."""
    seen: list[tuple[str, float]] = []

    def record(image: Image.Image, name: str, magnitude: float, *arguments: Any, **options: Any) -> Image.Image:
        seen.append((name, magnitude))
        return image

    if hasattr(policy, "_apply_image_or_video_transform"):
        monkeypatch.setattr(policy, "_apply_image_or_video_transform", record)
    else:
        monkeypatch.setattr("torchvision.transforms.autoaugment._apply_op", record)
    return seen


@pytest.mark.slow
def test_pairs_are_as_probable_as_in_torchvision(T, monkeypatch):
    """Which operations AutoAugment does, and with which signs: ours beside torchvision's own."""
    policy = T.AutoAugment(T.AutoAugmentPolicy.SVHN)
    recipe = recipe_of(T, policy)
    step = recipe.steps[0]
    draws = Draws(recipe.columns, 5).batch(0, np.arange(DRAWS), np.zeros(DRAWS, np.int64))
    pairs, ours = chosen(step, draws), 0.0
    expected = sum(p for pair in getattr(policy, "_policies", None) or policy.policies for _, p, _ in pair) / 25
    assert np.bincount(pairs, minlength=25) == pytest.approx(DRAWS / 25, abs=6 * (DRAWS / 25) ** 0.5)
    positive = []
    for number, branch in enumerate(step.branches):
        rows = draws[pairs == number]
        for when in branch:
            done = rows[rows[:, when.draw] < when.p]
            ours += len(done)
            positive += [
                (chosen(one, done) == 1).mean() for one in when.steps if isinstance(one, S.OneOf) and len(done)
            ]
    assert ours / DRAWS == pytest.approx(expected, abs=0.01)
    assert np.mean(positive) == pytest.approx(0.5, abs=0.01) and len(positive) > 15
    seen = recorded(T, policy, monkeypatch)
    torch.manual_seed(4)
    for _ in range(6000):
        policy(Image.new("RGB", (40, 30)))
    assert len(seen) / 6000 == pytest.approx(expected, abs=0.05)
