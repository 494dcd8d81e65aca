"""timm's AugMix: pixels equal timm's own code fed with the draws; weights and depths are distributed as timm's."""

from __future__ import annotations

import os
import types
from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from timm_feed import Fed

from headrace import DataLoader, Fields, ImageArray
from headrace._lowering import lower
from headrace._recipe.draws.draws import Draws
from headrace._recipe.draws.weights_from_draws import chain_weights
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.draw_columns import ChainWeights
from headrace.transforms import Compose, PILToTensor
from made_everywhere import assert_made

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("HEADRACE_DRAWS", "20000"))
#: Above it, two samples of COUNT numbers of one distribution have a Kolmogorov-Smirnov distance once in 10,000 times.
MOST = 2.23 * (2 / COUNT) ** 0.5
HPARAMS = {"translate_pct": 0.3, "img_mean": (124, 116, 104)}
SPECS = [
    "augmix-m5-w4-d2",
    "augmix-m3",
    "augmix-m8-w2-b1",
    "augmix-m9-w5-d3-a0.4-b1",
    "augmix-m6-w1-d1-a0.05",
    "augmix-m5-mstd1",
    "augmix-m7-w2-mstd0-b1",
]


def operations_of(steps: tuple[Any, ...], row: list[float]) -> list[S.OneOf]:
    """The choices that a chain makes, in order."""
    found = []
    for step in steps:
        if isinstance(step, S.OneOf):
            found.append(step)
        elif row[step.draw] < step.p:
            found += operations_of(step.steps, row)
    return found


def fed_timm(policies: ModuleType, policy: Any, step: S.MixChains, row: list[float], monkeypatch: Any) -> None:
    """Makes timm's code draw what a row of draws says."""
    chains = iter([operations_of(chain, row) for chain in step.chains])
    seed = int(row[step.draw - 1] * 2**53)
    state = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32])
    now: list[S.OneOf] = []

    def operation(one: S.OneOf) -> Any:
        chosen = policy.ops[int(row[one.draw] * len(policy.ops))]
        way, drawn = row[one.draw + 2], row[one.draw + 3]

        def operate(image: Any) -> Any:
            filters = chosen.kwargs["resample"]
            filter = int(way * 2 * len(filters)) % len(filters) if isinstance(filters, tuple) else 0
            monkeypatch.setattr(policies, "random", Fed(drawn, way < 0.5, filter))
            return chosen(image)

        return operate

    def choice(ops: Any, depth: int, replace: bool) -> list[Any]:
        if policy.depth > 0:
            now[:] = next(chains)
        assert ops is policy.ops and len(now) == depth and replace
        return [operation(one) for one in now]

    def randint(low: int, high: int) -> int:
        now[:] = next(chains)
        assert (low, high) == (1, 4)
        return len(now)

    numbers = types.SimpleNamespace(dirichlet=state.dirichlet, beta=state.beta, choice=choice, randint=randint)
    monkeypatch.setattr(policies, "np", types.SimpleNamespace(**{**vars(np), "random": numbers}))


def skip_where_timm_fails(policy: Any, image: Image.Image) -> None:
    """timm before 1.0.31 adds the transposed size of an image up: AugMix without a blend fails for 60 x 90 pixels."""
    try:
        policy(image)
    except ValueError as error:
        if "could not be broadcast" not in str(error):
            raise
        pytest.skip(f"the AugMix of timm {version('timm')} refuses images that are not square: {error}")


@pytest.mark.pixels
@pytest.mark.parametrize("interpolation", ["random", "one"])
@pytest.mark.parametrize("spec", SPECS)
def test_images_are_timms(
    policies: ModuleType, monkeypatch: pytest.MonkeyPatch, images: list[Image.Image], spec: str, interpolation: str
) -> None:
    hparams = dict(HPARAMS, **({} if interpolation == "random" else {"interpolation": 3}))
    policy = policies.augment_and_mix_transform(spec, hparams)
    skip_where_timm_fails(policy, images[1])
    for image in (images[1], images[5], images[8]):
        recipe = lower(Compose([policy, PILToTensor()]), size=image.size[::-1], native_only=True)
        (step,) = recipe.steps
        assert isinstance(step, S.MixChains)
        rows = Draws(recipe.columns, 3).batch(0, np.arange(12), np.zeros(12, np.int64)).tolist()
        expected = []
        for row in rows:
            fed_timm(policies, policy, step, row, monkeypatch)
            expected.append(pil_to_tensor(policy(image)))
            monkeypatch.undo()
        assert_made(recipe, image, rows, expected)
        assert any((one != expected[0]).any() for one in expected) or min(image.size) < 4


@pytest.mark.pixels
def test_gray_images_and_half_turns(policies: ModuleType, images: list[Image.Image]) -> None:
    """One channel; and rotations by exactly 180 degrees, which Pillow does as a transposition."""
    policy = policies.augment_and_mix_transform("augmix-m3-w2-mstd0", {"img_mean": 124})
    image = images[5].convert("L")
    recipe = lower(Compose([policy, PILToTensor()]), size=image.size[::-1], channels=1, native_only=True)
    loader = DataLoader(ImageArray(np.asarray(image)[None], [0], transform=Compose([policy, PILToTensor()])), 1)
    assert loader.native and loader.verify(1).batches == 1 and recipe.channels == 1
    turn = policies.AugmentOp("Rotate", 1.0, 60, {"magnitude_max": 60, "interpolation": 2})
    policy = policies.AugMixAugment([turn], depth=1, width=2)
    pixels = np.asarray(images[5])[None]
    loader = DataLoader(ImageArray(pixels, [0], transform=Compose([policy, PILToTensor()])), 1, seed=3)
    assert loader.native and loader.verify(1).batches == 1


@pytest.mark.pixels
def test_in_a_recipe(policies: ModuleType) -> None:
    """create_transform's, with the steps around it; two fields, whose columns are adjacent."""
    timm = pytest.importorskip("timm.data")
    pixels = np.random.default_rng(1).integers(0, 256, (48, 60, 72, 3), np.uint8)
    made = [
        timm.create_transform(48, is_training=True, auto_augment=spec, re_prob=0.3, interpolation=interpolation)
        for spec, interpolation in (("augmix-m5-w4-d2", "random"), ("augmix-m3-b1", "bicubic"))
    ]
    fields = {name: ImageArray(pixels, list(range(48)), transform=one) for name, one in zip("ab", made, strict=True)}
    for dataset in (*fields.values(), Fields(fields)):
        loader = DataLoader(dataset, 16, shuffle=True, seed=5, num_workers=2)
        assert loader.native and "called in" not in str(loader.explain())
        assert loader.verify(3).batches == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"width": 0}, "mixes 0 operations"),
        ({"width": 40}, "mixes 120 operations"),
        ({"ops": []}, "has no operations"),
        ({"ops": [print]}, "not timm's AugmentOp"),
    ],
)
def test_refused(policies: ModuleType, change: dict[str, Any], reason: str) -> None:
    policy = policies.augment_and_mix_transform("augmix-m3", dict(HPARAMS))
    vars(policy).update(change)
    with pytest.raises(TypeError, match=reason):
        lower(Compose([policy, PILToTensor()]), size=(9, 9), native_only=True)


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    at = np.sort(np.concatenate([ours, theirs]))
    below = [np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (ours, theirs)]
    return float(np.abs(below[0] - below[1]).max())


@pytest.mark.parametrize("alpha", [1.0, 0.4])
def test_weights_are_distributed_as_timms(policies: ModuleType, alpha: float) -> None:
    drawn = np.random.Generator(np.random.Philox(7)).random(COUNT)
    ours = chain_weights(ChainWeights(0, 1, 3, alpha, False), drawn)
    theirs = np.random.RandomState(8).dirichlet([alpha] * 3, COUNT).astype(np.float32)
    factors = np.random.RandomState(9).beta(alpha, alpha, COUNT).astype(np.float32)
    wrong = chain_weights(ChainWeights(0, 1, 3, alpha * 1.3, False), drawn)
    for chain in range(3):
        assert distance(ours[:, chain], theirs[:, chain]) < MOST < distance(wrong[:, chain], theirs[:, chain])
    assert distance(ours[:, 3], factors) < MOST < distance(wrong[:, 3], factors)
    blends = chain_weights(ChainWeights(0, 1, 3, alpha, True), drawn[:2000])
    mix = policies.AugMixAugment([], alpha, 3, blended=True)
    with np.errstate(invalid="ignore"):
        expected = np.array([mix._calc_blended_weights(np.float32(row[:3]), np.float32(row[3])) for row in ours[:2000]])
    assert np.array_equal(blends[:, :3], np.nan_to_num(expected))


def test_depths_are_timms(policies: ModuleType) -> None:
    policy = policies.augment_and_mix_transform("augmix-m3-w2", dict(HPARAMS))
    recipe = lower(Compose([policy, PILToTensor()]), size=(9, 9), native_only=True)
    (step,) = recipe.steps
    assert isinstance(step, S.MixChains)
    rows = Draws(recipe.columns, 1).batch(0, np.arange(3000), np.zeros(3000, np.int64)).tolist()
    depths = [len(operations_of(chain, row)) for row in rows for chain in step.chains]
    assert all(abs(depths.count(depth) / len(depths) - 1 / 3) < 0.02 for depth in (1, 2, 3))
    assert set(depths) == {1, 2, 3}
