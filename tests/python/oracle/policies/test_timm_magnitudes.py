"""timm's policies with drawn magnitudes: each operation equals timm's own, and magnitudes are distributed as timm's."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from timm_feed import Fed

from headrace import DataLoader, ImageArray
from headrace._lowering import lower
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.recipe import Recipe
from headrace.transforms import Compose, PILToTensor
from made_everywhere import assert_made

pytestmark = pytest.mark.slow

COUNT = 100_000
#: Above it, two samples of COUNT numbers of one distribution have a Kolmogorov-Smirnov distance once in 10,000 times.
MOST = 2.23 * (2 / COUNT) ** 0.5
HPARAMS = {"translate_const": 20, "img_mean": (124, 116, 104)}


def completed(recipe: Recipe, drawn: list[list[float]]) -> list[list[float]]:
    return Draws(recipe.columns, 0).add_computed(np.array(drawn)).tolist()


def ways_of(policies: ModuleType, monkeypatch: Any, policy: Any, drawn: list[float]) -> list[Any]:
    """(drawn columns, function that makes timm's image) for each operation, sign and filter of one layer."""
    ways = []
    for number, operation in enumerate(policy.ops):
        filters = operation.kwargs["resample"] if isinstance(operation.kwargs["resample"], tuple) else (0,)
        for one in drawn:
            for negative in (True, False):
                for filter in range(len(filters)):
                    way = (filter + 0.5) / len(filters) / 2 + (0 if negative else 0.5)

                    def theirs(
                        image: Any, operation: Any = operation, fed: tuple[float, bool, int] = (one, negative, filter)
                    ) -> Any:
                        monkeypatch.setattr(policies, "random", Fed(*fed))
                        return operation(image)

                    ways.append(([(number + 0.5) / len(policy.ops), 0.5, way, one], theirs))
    return ways


DEVIATES = [-30.0, -4.1, -1.0, -0.37, 0.0, 0.5, 1.0, 1.9, 2.0, 6.0]
SHARES = [0.0, 0.1, 0.333, 0.5, 0.77, 0.99999]
SPECS = [
    ("rand-m9-mstd0.5-p1-n1-inc1", DEVIATES),
    ("rand-m7-mstd2.5-p1-n1", DEVIATES),
    ("rand-m5-mstd7.5-mmax20-p1-n1-inc1", DEVIATES),
    ("rand-m9-mstd101-p1-n1-inc1", SHARES),
    ("rand-m10-mstd101-p1-n1", SHARES),
]


@pytest.mark.pixels
@pytest.mark.parametrize("filter", ["random", "one"])
@pytest.mark.parametrize(("spec", "drawn"), SPECS, ids=[spec for spec, _ in SPECS])
def test_each_operation_is_timms(
    policies: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    images: list[Image.Image],
    spec: str,
    drawn: list[Any],
    filter: str,
) -> None:
    policy = policies.rand_augment_transform(
        spec, dict(HPARAMS, **({} if filter == "random" else {"interpolation": 3}))
    )
    extra = ("TranslateX", "TranslateY", "Desaturate", "PosterizeOriginal")
    policy.ops += [policies.AugmentOp(name, 1.0, policy.ops[0].magnitude, policy.ops[0].hparams) for name in extra]
    ways = ways_of(policies, monkeypatch, policy, drawn)
    failed = 0
    for image in (images[1], images[5], images[8]):
        recipe = lower(Compose([policy, PILToTensor()]), size=image.size[::-1], native_only=True)
        rows, expected = [], []
        for row, (_, theirs) in zip(completed(recipe, [row for row, _ in ways]), ways, strict=True):
            try:
                expected.append(pil_to_tensor(theirs(image)))
            except ValueError as error:  # Pillow 13 refuses to posterize to 0 bits
                assert "bits must be" in str(error)
                with pytest.raises(ValueError, match="bits must be"):
                    reference_sample(image, recipe, row)
                failed += 1
            else:
                rows.append(row)
        assert_made(recipe, image, rows, expected)
    assert failed < len(ways)


@pytest.mark.pixels
def test_posterize_to_no_bits_is_pillows_error(policies: ModuleType) -> None:
    """Where timm's own operation raises, the sample fails with Pillow's words."""
    policy = policies.rand_augment_transform("rand-m10-mstd0.01-p1-n1-inc1")
    policy.ops = [one for one in policy.ops if one.name == "PosterizeIncreasing"]
    pixels = np.full((32, 8, 8, 3), 200, np.uint8)
    loader = DataLoader(ImageArray(pixels, list(range(32)), transform=Compose([policy, PILToTensor()])), 1, seed=1)
    try:
        [policy(Image.fromarray(one)) for one in pixels]
    except ValueError as error:
        with pytest.raises(Exception, match=str(error)):
            list(loader)
    else:
        assert loader.verify(8).batches == 8


@pytest.mark.pixels
@pytest.mark.parametrize("spec", ["original-mstd0.5", "originalr-mstd1.5", "v0r-mstd0.5", "v0-mstd101"])
def test_auto_augment(policies: ModuleType, spec: str) -> None:
    """Through a loader, with the draws of the oracle; posterizing cannot fail."""
    policy = policies.auto_augment_transform(spec, {"magnitude_std": float("inf")} if "101" in spec else None)
    for some in policy.policy:
        some[:] = [one for one in some if not one.name.startswith("Posterize")]
    rng = np.random.default_rng(2)
    dataset = ImageArray(rng.integers(0, 256, (96, 40, 32, 3), np.uint8), list(range(96)))
    dataset.transform = Compose([policy, PILToTensor()])
    loader = DataLoader(dataset, 16, seed=3)
    assert loader.native
    assert not any(line.runs == "Python" for line in loader.explain().lines if "AutoAugment" in line.part)
    assert loader.verify(6).batches == 6


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference between the distribution functions of two samples."""
    at = np.sort(np.concatenate([a, b]))
    below = [np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


def theirs_of(operation: Any) -> np.ndarray:
    """COUNT arguments that timm's operation draws."""
    seen: list[float] = []
    operation.aug_fn = lambda image, argument, **options: seen.append(float(argument))
    state = random.getstate()
    random.seed(7)
    for _ in range(COUNT):
        operation(None)
    random.setstate(state)
    return np.array(seen)


def ours_of(policies: ModuleType, operation: Any) -> np.ndarray:
    """COUNT arguments that headrace draws for the operation, from the column that its step reads."""
    policy = policies.RandAugment([operation], 1)
    recipe = lower(Compose([policy, PILToTensor()]), size=(30, 40), native_only=True)
    step: Any = recipe.steps[0]
    inner: Any = step.branches[0][0].steps[0]
    inner = inner.branches[0][0] if isinstance(inner, S.OneOf) else inner
    places = [one for one in vars(inner).values() if isinstance(one, S.Drawn)]
    places += [one for one in getattr(inner, "matrix", ()) if isinstance(one, S.Drawn)]
    column = places[0].column if places else inner.draw
    drawn = Draws(recipe.columns, 5).batch(0, np.arange(COUNT), np.zeros(COUNT, np.int64))[:, column]
    return drawn / 40 if operation.name == "TranslateXRel" else drawn


NAMES = ["Rotate", "ShearX", "TranslateXRel", "Color", "SharpnessIncreasing", "SolarizeIncreasing", "SolarizeAdd"]


@pytest.mark.parametrize("mstd", [0.5, 4.0, float("inf")])
@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_distributed_as_timms(policies: ModuleType, name: str, mstd: float) -> None:
    def operation(std: float, magnitude: float = 9, most: int | None = None) -> Any:
        return policies.AugmentOp(name, 1.0, magnitude, {"magnitude_std": std, "magnitude_max": most})

    theirs = theirs_of(operation(mstd))
    assert distance(ours_of(policies, operation(mstd)), theirs) < MOST
    wrong = operation(mstd * 1.15) if mstd < 100 else operation(mstd, 8.7)
    assert distance(ours_of(policies, wrong), theirs) > MOST


def test_signs_and_bits(policies: ModuleType) -> None:
    def operation(name: str) -> Any:
        return policies.AugmentOp(name, 1.0, 8, {"magnitude_std": 2.0})

    ours, theirs = ours_of(policies, operation("Rotate")), theirs_of(operation("Rotate"))
    assert abs((ours > 0).mean() - 0.5) < 0.008 and abs((theirs > 0).mean() - 0.5) < 0.008
    bits, expected = ours_of(policies, operation("PosterizeIncreasing")), theirs_of(operation("PosterizeIncreasing"))
    for one in (1, 2, 3, 4):
        assert abs((bits == one).mean() - (expected == one).mean()) < 0.01
    assert set(bits) - {-1.0} <= set(expected)


def test_normals_are_torchs(policies: ModuleType) -> None:
    recipe = lower(
        Compose([policies.rand_augment_transform("rand-m5-mstd1-n1", dict(HPARAMS)), PILToTensor()]),
        size=(30, 40),
        native_only=True,
    )
    drawn = Draws(recipe.columns, 6).batch(0, np.arange(COUNT), np.zeros(COUNT, np.int64))[:, 3]
    assert distance(drawn, torch.randn(COUNT, generator=torch.Generator().manual_seed(0)).numpy()) < MOST
    assert distance(drawn * 1.05, torch.randn(COUNT, generator=torch.Generator().manual_seed(0)).numpy()) > MOST
