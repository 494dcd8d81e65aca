"""RandomErasing with drawn values or several boxes: boxes are timm's, and values are distributed as torch's normal."""

from __future__ import annotations

import importlib
import random
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace import DataLoader, ImageArray
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from headrace._oracle.reference import reference_sample
from headrace._oracle.tensor import noise_levels
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.recipe import Recipe
from headrace._recipe.steps.step_numbers import LEVELS, noise_quantiles
from places import Place
from support import assert_same

COUNT = 100_000
#: Above it, two samples of COUNT numbers of one distribution have a Kolmogorov-Smirnov distance once in 10,000 times.
MOST = 2.23 * (2 / COUNT) ** 0.5
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@pytest.fixture(scope="module")
def timm_erasing(torchvision: ModuleType) -> ModuleType:
    """timm.data.random_erasing, or a skip where timm is not installed."""
    pytest.importorskip("timm", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("timm.data.random_erasing")


def images(count: int = 24, height: int = 30, width: int = 37, channels: int = 3) -> ImageArray:
    pixels = np.random.default_rng(3).integers(0, 256, (count, height, width, channels), np.uint8)
    return ImageArray(pixels if channels == 3 else pixels[..., 0], list(range(count)))


def steps_of(erasing: Any, *after: Any) -> T.Compose:
    return T.Compose([T.ToTensor(), T.Normalize(MEAN, STD), erasing, *after])


@pytest.mark.parametrize("dtype", [None, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("after", [[], [T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.Normalize(STD, MEAN)]])
def test_native_batches_are_the_oracles(place: Place, dtype: torch.dtype | None, after: list[Any]) -> None:
    """Also after flips and further steps, in every dtype, and with the device's kernel."""
    dataset = images()
    dataset.transform = steps_of(T.RandomErasing(0.8, value="random"), *after)
    loader = place.loader(dataset, dtype=dtype)
    assert loader.native
    expected = list(loader.reference())
    assert_same(place.fetched(loader), expected)


@pytest.mark.parametrize("mode", ["const", "rand", "pixel"])
@pytest.mark.parametrize("counts", [(1, None), (1, 4), (3, 3)], ids=str)
def test_timms_modes_natively(timm_erasing: ModuleType, place: Place, mode: str, counts: tuple[Any, ...]) -> None:
    dataset = images()
    erasing = timm_erasing.RandomErasing(0.7, mode=mode, min_count=counts[0], max_count=counts[1], device="cpu")
    dataset.transform = steps_of(erasing, T.RandomHorizontalFlip())
    loader = place.loader(dataset)
    assert loader.native and "Python" not in {line.runs for line in loader.explain().lines if "Erasing" in line.part}
    expected = list(loader.reference())
    assert_same(place.fetched(loader), expected)


def test_gray_images(place: Place) -> None:
    dataset = images(channels=1)
    dataset.transform = T.Compose([T.ToTensor(), T.RandomErasing(0.9, value="random"), T.Normalize([0.3], [0.2])])
    loader = place.loader(dataset)
    assert loader.native
    expected = list(loader.reference())
    assert_same(place.fetched(loader), expected)


class Fed:
    """Replaces the module random inside timm: a sample's draws, in the order in which timm asks for them."""

    def __init__(self, recipe: Recipe, row: np.ndarray) -> None:
        (step,) = recipe.steps
        assert isinstance(step, S.EraseBoxes)
        self.step = step
        self.row, self.box, self.tries = row, -1, 0

    def random(self) -> float:
        return float(self.row[self.step.draw])

    def randint(self, low: int, high: int) -> int:
        if low > 0:  # the number of boxes
            return low + int(self.row[self.step.draw + 1] * (high - low + 1))
        self.places += 1
        return int(self.row[self._first() + 19 + self.places] * (high + 1))

    def uniform(self, low: float, high: float) -> float:
        if self.tries % 20 == 0:
            self.box, self.tries, self.places = self.box + 1, 0, 0
        self.tries += 1
        return float(self.row[self._first() + self.tries - 1])

    def _first(self) -> int:
        return self.step.draw + 2 + self.box * (22 + self.step.drawn)

    def pixels(self, per_pixel: bool, rand_color: bool, size: tuple[int, int, int], **options: Any) -> torch.Tensor:
        drawn = self.row[self._first() + 22 : self._first() + 22 + self.step.drawn]
        self.tries = 20  # the next number is the next box's
        if per_pixel:
            return noise_quantiles()[
                [splitmix16(int(drawn[0] * 2**53) << 11, k) for k in range(int(np.prod(size)))]
            ].reshape(size)
        return (
            noise_quantiles()[[int(u * LEVELS) for u in drawn]][:, None, None] if rand_color else torch.zeros(3, 1, 1)
        )


def splitmix16(state: int, k: int) -> int:
    """Sixteen bits of SplitMix64, by Python's integers."""
    z = (state + (k // 4 + 1) * 0x9E3779B97F4A7C15) % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> shift)) * factor % 2**64
    return ((z ^ (z >> 31)) >> 16 * (k % 4)) % LEVELS


@pytest.mark.parametrize("mode", ["const", "rand", "pixel"])
@pytest.mark.parametrize("counts", [(1, 3), (2, 2)], ids=str)
def test_boxes_and_places_are_timms(
    timm_erasing: ModuleType, monkeypatch: pytest.MonkeyPatch, mode: str, counts: tuple[Any, ...]
) -> None:
    erasing = timm_erasing.RandomErasing(0.7, mode=mode, min_count=counts[0], max_count=counts[1], device="cpu")
    recipe = lower(steps_of(erasing), size=(20, 26), native_only=True)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 26, 3), np.uint8))
    plain = T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])(image)
    monkeypatch.setattr(
        timm_erasing, "math", SimpleNamespace(exp=lambda value: value, sqrt=importlib.import_module("math").sqrt)
    )
    changed = 0
    for row in Draws(recipe.columns, 4).batch(0, np.arange(60), np.zeros(60, np.int64)):
        fed = Fed(recipe, row)
        monkeypatch.setattr(timm_erasing, "random", fed)
        monkeypatch.setattr(timm_erasing, "_get_pixels", fed.pixels)
        theirs = erasing(plain.clone())
        changed += not torch.equal(theirs, plain)
        assert torch.equal(reference_sample(image, recipe, row), theirs)
    assert 30 < changed < 60


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference between the distribution functions of two samples."""
    at = np.sort(np.concatenate([a, b]))
    below = [np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


def test_values_are_distributed_as_torchs() -> None:
    """Within one box, and the same elements of many boxes; a wrong deviation, mean and shape are noticed."""
    theirs = torch.randn(COUNT, generator=torch.Generator().manual_seed(1)).numpy()
    table = noise_quantiles().numpy()
    within = table[noise_levels(12345678901234567 % 2**53, COUNT)]
    seeds = np.random.default_rng(1).integers(0, 2**53, COUNT // 10)
    across = table[np.concatenate([noise_levels(int(seed), 10) for seed in seeds])]
    for ours in (within, across):
        assert distance(ours, theirs) < MOST
        assert abs(np.corrcoef(ours[:-1], ours[1:])[0, 1]) < 0.015
        for wrong in (ours * 1.06, ours + 0.04, np.sign(ours) * np.abs(ours) ** 1.1):
            assert distance(wrong, theirs) > MOST


def test_quantiles() -> None:
    table = noise_quantiles()
    assert table.shape == (LEVELS,) and table.dtype == torch.float32 and torch.equal(table, -table.flip(0))
    assert bool((table[1:] > table[:-1]).all()) and abs(table.double().var().item() - 1) < 1e-3


def test_number_of_boxes_is_uniform(timm_erasing: ModuleType) -> None:
    erasing = timm_erasing.RandomErasing(1.0, mode="const", max_count=3, device="cpu")
    (step,) = lower(steps_of(erasing), size=(64, 64), native_only=True).steps
    assert isinstance(step, S.EraseBoxes)
    assert (step.fewest, step.most, step.noise, step.drawn) == (1, 3, "", 0)
    recipe = lower(steps_of(erasing), size=(64, 64), native_only=True)
    uniform = Draws(recipe.columns, 0).batch(0, np.arange(9000), np.zeros(9000, np.int64))[:, step.draw + 1]
    ours = 1 + (uniform * 3).astype(int)
    state = random.getstate()
    random.seed(0)
    theirs = [random.randint(1, 3) for _ in range(9000)]
    random.setstate(state)
    for count in (1, 2, 3):
        assert abs((ours == count).mean() - theirs.count(count) / 9000) < 0.03


def test_refusals(timm_erasing: ModuleType) -> None:
    with pytest.raises(LoweringError, match=r"normally distributed numbers into a tensor of torch\.uint8.*ToDtype"):
        lower(T.Compose([T.PILToTensor(), T.RandomErasing(value="random")]), size=(9, 9), native_only=True)
    many = timm_erasing.RandomErasing(0.5, mode="pixel", max_count=101, device="cpu")
    with pytest.raises(LoweringError, match="erases 1 to 101 boxes; natively between 1 and 100"):
        lower(steps_of(many), size=(9, 9), native_only=True)


def test_whole_loader_verifies() -> None:
    dataset = images(64)
    dataset.transform = steps_of(T.RandomErasing(0.5, value="random"))
    assert DataLoader(dataset, 16, shuffle=True, seed=2).verify(4).batches == 4
