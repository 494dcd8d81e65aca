"""What augmentation policies choose is distributed as in torchvision's own code."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from buffered_torch import DRAWS, buffer_torchvision
from PIL import Image

from headrace._lowering import lower
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps import steps as S

SIZE = (30, 40)
#: What a sample undergoes: names of operations with the texts of their magnitudes, "-0.0" other than "0.0".
Done = tuple[tuple[str, str], ...]

pytestmark = pytest.mark.slow


def space_of(T: Any, policy: Any) -> dict[str, tuple[list[float], bool]]:
    """Operation -> its magnitudes, and whether they have a sign."""
    bins = getattr(policy, "num_magnitude_bins", 10)
    if T.__name__.endswith("v2"):
        space = {name: (of(bins, *SIZE), signed) for name, (of, signed) in policy._AUGMENTATION_SPACE.items()}
    else:
        sized = () if isinstance(policy, T.TrivialAugmentWide) else (SIZE,)
        space = policy._augmentation_space(bins, *sized)
    return {
        name: ([0.0] if found is None or not found.ndim else found.tolist(), signed)
        for name, (found, signed) in space.items()
    }


def ways(entry: tuple[list[float], bool], bin: int | None) -> list[float]:
    """The equally probable magnitudes of an operation, in the order of the branches that it is lowered to."""
    magnitudes, signed = entry
    magnitudes = magnitudes if bin is None or len(magnitudes) == 1 else [magnitudes[bin]]
    return [sign * one for one in magnitudes for sign in ((-1.0, 1.0) if signed else (1.0,))]


def operations(space: Any, bin: int | None) -> list[list[tuple[str, str]]]:
    return [[(name, repr(float(way))) for way in ways(entry, bin)] for name, entry in space.items()]


def shares_of(every: list[list[tuple[str, str]]]) -> dict[Done, float]:
    """Each operation is as probable as the others, and so are its ways."""
    shares: dict[Done, float] = defaultdict(float)
    for some in every:
        for one in some:
            shares[(one,)] += 1 / len(every) / len(some)
    return shares


def distance(counts: Counter[Done], shares: dict[Done, float]) -> float:
    """Pearson's statistic, in standard deviations above its mean."""
    total = sum(counts.values())
    assert counts.keys() <= shares.keys() and sum(shares.values()) == pytest.approx(1)
    square = sum((counts[key] - total * share) ** 2 / (total * share) for key, share in shares.items())
    freedom = len(shares) - 1
    return (square - freedom) / (2 * freedom) ** 0.5


def lowered(T: Any, policy: Any) -> tuple[S.OneOf, np.ndarray]:
    """Its only step, and draws of many samples."""
    recipe = lower(T.Compose([policy, T.PILToTensor()]), size=SIZE, native_only=True)
    (step,) = recipe.steps
    assert isinstance(step, S.OneOf)
    return step, Draws(recipe.columns, 11).batch(0, np.arange(DRAWS), np.zeros(DRAWS, np.int64))


def chosen(step: S.OneOf, draws: np.ndarray) -> np.ndarray:
    """The branch that each sample takes."""
    return np.searchsorted(np.array(step.bounds), draws[:, step.draw], side="right")


def theirs(T: Any, policy: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[Done]:
    """What torchvision's own code does to `DRAWS` samples; the operations themselves are left out."""
    buffer_torchvision(monkeypatch)
    done: list[tuple[str, str]] = []

    def record(image: Image.Image, name: str, magnitude: float, *arguments: Any, **options: Any) -> Image.Image:
        done.append((name, repr(float(magnitude))))
        return image

    if T.__name__.endswith("v2"):
        bins = getattr(policy, "num_magnitude_bins", 10)
        given = {name: (of(bins, *SIZE), signed) for name, (of, signed) in policy._AUGMENTATION_SPACE.items()}
        space = {name: (lambda *sizes, found=found: found, signed) for name, (found, signed) in given.items()}
        monkeypatch.setattr(type(policy), "_AUGMENTATION_SPACE", space)
        monkeypatch.setattr(policy, "_apply_image_or_video_transform", record)
        image = Image.new("RGB", SIZE[::-1])
        flat = ([image], None, 0), image
        monkeypatch.setattr(policy, "_flatten_and_extract_image_or_video", lambda inputs: flat)
        monkeypatch.setattr(policy, "_unflatten_and_insert_image_or_video", lambda flat, made: made)
    else:
        sized = () if isinstance(policy, T.TrivialAugmentWide) else (SIZE,)
        made = policy._augmentation_space(getattr(policy, "num_magnitude_bins", 10), *sized)
        monkeypatch.setattr(policy, "_augmentation_space", lambda *arguments: made)
        monkeypatch.setattr("torchvision.transforms.autoaugment._apply_op", record)
        image = Image.new("RGB", SIZE[::-1])
    counts: Counter[Done] = Counter()
    for _ in range(DRAWS):
        done.clear()
        policy.forward(image)
        counts[tuple(done)] += 1
    return counts


@pytest.mark.parametrize("name", ["RandAugment", "TrivialAugmentWide"])
def test_operations_and_magnitudes(T: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    policy = T.RandAugment(1, 9) if name == "RandAugment" else T.TrivialAugmentWide()
    every = operations(space_of(T, policy), getattr(policy, "magnitude", None))
    shares = shares_of(every)
    step, draws = lowered(T, policy)
    ours: Counter[Done] = Counter()
    numbers = chosen(step, draws)
    for number, (branch, some) in enumerate(zip(step.branches, every, strict=True)):
        rows = draws[numbers == number]
        inner = branch[0] if branch and isinstance(branch[0], S.OneOf) else None
        assert len(some) == (len(inner.branches) if inner else 1)
        for way in chosen(inner, rows) if inner else np.zeros(len(rows), int):
            ours[(some[way],)] += 1
    drawn = theirs(T, policy, monkeypatch)
    assert distance(ours, shares) < 4 and distance(drawn, shares) < 4
    wrong = [*every[:-1], every[-1] * 2, every[-1]]  # one operation a little more often
    assert distance(ours, shares_of(wrong)) > 10 and distance(drawn, shares_of(wrong)) > 10
    tilted = {key: share * (1.3 if key[0][1][0] == "-" else 0.7) for key, share in shares.items()}
    total = sum(tilted.values())
    assert distance(ours, {key: share / total for key, share in tilted.items()}) > 10


def pair_ways(pair: Any, space: Any) -> Iterator[tuple[Done, float]]:
    """Yields what can happen in a pair of operations, with its probability."""
    parts = []
    for name, p, bin in pair:
        some = ways(space[name], bin)
        done = [(((name, repr(float(way))),), p / len(some)) for way in some]
        parts.append([((), 1 - p), *done])
    for (first, share), (second, other) in itertools.product(*parts):
        yield (*first, *second), share * other


def shares_of_pairs(pairs: Any, space: Any) -> dict[Done, float]:
    shares: dict[Done, float] = defaultdict(float)
    for done, share in (one for pair in pairs for one in pair_ways(pair, space)):
        if share:
            shares[done] += share / len(pairs)
    return shares


@pytest.mark.parametrize("data", ["IMAGENET", "CIFAR10", "SVHN"])
def test_pairs(T: ModuleType, monkeypatch: pytest.MonkeyPatch, data: str) -> None:
    policy = T.AutoAugment(T.AutoAugmentPolicy[data])
    pairs, space = getattr(policy, "_policies", None) or policy.policies, space_of(T, policy)
    shares = shares_of_pairs(pairs, space)
    step, draws = lowered(T, policy)
    ours: Counter[Done] = Counter()
    numbers = chosen(step, draws)
    for number, (branch, pair) in enumerate(zip(step.branches, pairs, strict=True)):
        rows = draws[numbers == number]
        parts = []
        for when, (name, _, bin) in zip(branch, pair, strict=True):
            some = [(name, repr(float(way))) for way in ways(space[name], bin)]
            assert isinstance(when, S.When)
            inner = when.steps[0] if when.steps and isinstance(when.steps[0], S.OneOf) else None
            assert len(some) == (len(inner.branches) if inner else 1)
            taken = chosen(inner, rows) if inner else np.zeros(len(rows), int)
            done = rows[:, when.draw] < when.p
            parts.append([(some[way],) if yes else () for way, yes in zip(taken, done, strict=True)])
        ours.update((*first, *second) for first, second in zip(*parts, strict=True))
    drawn = theirs(T, policy, monkeypatch)
    assert distance(ours, shares) < 4 and distance(drawn, shares) < 4
    wrong = shares_of_pairs([*pairs, pairs[0], pairs[0]], space)  # one pair more often
    assert distance(ours, wrong) > 10 and distance(drawn, wrong) > 10
