"""Transforms of timm.data.create_transform: the oracle equals them on the same draws, or they are refused by name."""

from __future__ import annotations

import itertools
import random
from types import ModuleType
from typing import Any

import pytest
import torch
from PIL import Image

from against_torchvision import assert_equal_on
from headrace import DataLoader
from headrace._lowering import LoweringError, lower
from headrace._oracle.reference import reference_sample
from headrace._recipe.arithmetic import boxes
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps import steps as S
from headrace.transforms import Compose, PILToTensor, Resize
from places import Place
from support import assert_same, blobs
from torchvision_feed import Feeder

pytestmark = pytest.mark.slow


@pytest.fixture
def feeder(timm: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Feeder:
    feeder = Feeder(monkeypatch)
    feeder.feed_timm()
    return feeder


@pytest.fixture(scope="module")
def no_slivers(images: list[Image.Image]) -> list[Image.Image]:
    """Images without slivers: timm's crop of a sliver can round to no pixels, which Pillow makes black."""
    return [image for image in images if min(image.size) > 4 and max(image.size) / min(image.size) < 30]


TRAINING: list[dict[str, Any]] = [
    {},
    {"interpolation": "bicubic", "scale": (0.3, 1), "ratio": (0.5, 1.5)},
    {"interpolation": "random"},
    {"input_size": (3, 40, 24), "vflip": 0.5, "hflip": 0.0},
    {"color_jitter": (0.4, 0.3, 0.2, 0.1)},
    {"color_jitter": 0.8, "color_jitter_prob": 0.8, "grayscale_prob": 0.3},
    {"color_jitter": None},
    {"gaussian_blur_prob": 0.7},
    {"re_prob": 0.5},
    {"re_prob": 1.0, "mean": (0.5,) * 3, "std": (0.5,) * 3},
    {"normalize": False},
    {"use_prefetcher": True, "re_prob": 0.5},
    {"no_aug": True},
    {"train_crop_mode": "rkrr", "interpolation": "bicubic"},
    {"train_crop_mode": "rkrc"},
    {"train_crop_mode": "rkrc", "interpolation": "random", "input_size": (3, 40, 24), "scale": (0.3, 1.5)},
    {"interpolation": "lanczos", "re_prob": 0.3, "re_num_splits": 2},
]
EVALUATION: list[dict[str, Any]] = [
    {},
    {"crop_pct": 1.0, "interpolation": "bicubic"},
    {"crop_border_pixels": 2},
    {"crop_mode": "squash", "crop_pct": 0.9},
    {"crop_mode": "squash", "input_size": (3, 24, 30)},
    {"crop_mode": "border"},
    {"crop_mode": "border", "crop_pct": 1.0, "input_size": (3, 24, 31), "interpolation": "bicubic"},
    {"input_size": (3, 24, 31)},
    {"input_size": (3, 31, 24), "crop_pct": 1.0, "interpolation": "lanczos"},
    {"use_prefetcher": True},
    {"normalize": False},
]
CALLS = [{"is_training": True, **options} for options in TRAINING] + EVALUATION


@pytest.mark.parametrize("options", CALLS, ids=str)
def test_create_transform(
    timm: ModuleType, feeder: Feeder, no_slivers: list[Image.Image], options: dict[str, Any]
) -> None:
    assert_equal_on(no_slivers, feeder, timm.create_transform(**{"input_size": 28, **options}), 8)


def test_random_interpolation_is_one_of_two_crops_in_the_same_columns(timm: ModuleType) -> None:
    transform = timm.create_transform(28, is_training=True, interpolation="random", color_jitter=None)
    recipe = lower(transform)
    crops = [S.RandomResizedCrop(28, 28, (0.08, 1.0), (0.75, 4 / 3), name, 0) for name in ("bilinear", "bicubic")]
    assert recipe.steps[0] == S.OneOf(((crops[0],), (crops[1],)), (0.5, 1.0), 22)
    steps: tuple[Any, ...] = recipe.steps
    assert [step.draw for step in steps] == [22, 23]


def test_lowered_as_torchvisions(timm: ModuleType, torchvision: ModuleType) -> None:
    T = torchvision.transforms
    theirs = lower(timm.create_transform(28, is_training=True, color_jitter=0.4))
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    ours = [T.RandomResizedCrop(28), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4), T.ToTensor()]
    assert theirs.fingerprint() == lower(T.Compose([*ours, T.Normalize(mean, std)])).fingerprint()


def test_center_crop_or_pad(timm: ModuleType, feeder: Feeder, images: list[Image.Image]) -> None:
    modes = [(0, "edge"), (0, "reflect"), (0, "symmetric")]
    for fill, mode in [
        (0, "constant"),
        ((0, 0, 0), "constant"),
        (7, "constant"),
        ([124, 116, 104], "constant"),
        *modes,
    ]:
        crop = timm.transforms.CenterCropOrPad((30, 64), fill, mode)
        assert_equal_on(images, feeder, Compose([crop, timm.transforms.MaybePILToTensor()]), 1)


@pytest.mark.parametrize("longest", [0, 0.3, 1])
def test_resize_keep_ratio(timm: ModuleType, images: list[Image.Image], longest: float) -> None:
    """Its size is that of the oracle for every size of an image, also where the quotient is half a pixel."""
    t = timm.transforms
    resize = t.ResizeKeepRatio((20, 30), longest)
    step = lower(Compose([resize, t.CenterCropOrPad(9), t.MaybePILToTensor()]), native_only=True).steps[0]
    assert isinstance(step, S.ResizeKeepRatio)
    for height, width in itertools.product(range(1, 70), range(1, 70)):
        image = Image.new("L", (width, height))
        expected = t.ResizeKeepRatio.get_params(image, (20, 30), float(longest))
        assert list(boxes.resize_keep_ratio(height, width, (step.height, step.width), step.longest)) == expected


def test_the_size_behind_a_padding_that_no_image_exceeds(timm: ModuleType) -> None:
    """The images' sizes vary before it; a resize whose longer edge has a limit bounds them."""
    pad = timm.transforms.RandomPad((30, 40))
    for most, size in ((30, (30, 40)), (31, None), (None, None)):
        recipe = lower(Compose([Resize(25, max_size=most), pad, PILToTensor()]), native_only=True, may_vary=True)
        assert (recipe.height, recipe.width) == (size or (0, 0))
    loader = DataLoader(blobs(12, Compose([Resize(25, max_size=30), pad, PILToTensor()])), 4, seed=1)
    assert loader.native
    assert_same(loader, list(loader.reference()))


def test_random_interpolation_of_resize_keep_ratio(timm: ModuleType) -> None:
    t = timm.transforms
    steps = [t.ResizeKeepRatio(28, interpolation="random"), t.CenterCropOrPad(28), t.MaybePILToTensor()]
    ways = [S.ResizeKeepRatio(28, 28, 0.0, name) for name in ("bilinear", "bicubic")]
    assert lower(Compose(steps)).steps[0] == S.OneOf(((ways[0],), (ways[1],)), (0.5, 1.0), 0)


def test_native_batches_of_its_evaluation(timm: ModuleType, place: Place) -> None:
    """The core's rounding is the oracle's, which is timm's; in memory, and with the device's kernel."""
    for options in EVALUATION:
        dataset = blobs(12, timm.create_transform(**{"input_size": (3, 40, 45), **options}))
        lower(dataset.transform, native_only=True)
        loader = place.loader(dataset)
        made = place.fetched(loader)
        assert_same(made, list(loader.reference()))
        assert all(torch.equal(image, dataset[k][0]) for k, image in enumerate(torch.cat([b[0] for b in made])))


REFUSED = [
    ({"auto_augment": "augmix-m3-w30"}, r"AugMixAugment\(.*mixes 90 operations; natively between 1 and 64"),
    ({"re_prob": 0.2, "re_count": 200}, r"RandomErasing\(.*erases 1 to 200 boxes; natively between 1 and 100"),
    ({"is_training": False, "patchify": True}, r"step 5, .*Patchify.*has no native twin"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=lambda one: str(one)[:40])
def test_refusals(timm: ModuleType, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        lower(
            timm.create_transform(**{"input_size": 28, "is_training": True, "color_jitter": None, **options}),
            native_only=True,
        )


def test_refusals_of_single_transforms(timm: ModuleType) -> None:
    t = timm.transforms
    for step, message in (
        (t.ToNumpy(), r"step 1, .*ToNumpy.*: makes arrays; use MaybePILToTensor\(\)"),
        (t.ToTensor(), r"step 1, .*ToTensor.*: makes floats up to 255; use MaybePILToTensor\(\) and a conversion"),
        (t.CenterCropOrPad(9, (1, 2)), r"step 1, CenterCropOrPad\(.*'fill' does not match the number of channels"),
        (t.CenterCropOrPad(9, 0, "wrap"), r"step 1, CenterCropOrPad\(.*padding_mode must be constant"),
        (t.ResizeKeepRatio(9, 1.5), r"step 1, ResizeKeepRatio\(.*longest must be between 0 and 1"),
        (t.RandomCropOrPad(9, padding_mode="wrap"), r"step 1, RandomCropOrPad\(.*padding_mode must be constant"),
        (t.ResizeKeepRatio(9, random_scale_prob=1, random_scale_range=(0, 1)), "random_scale_range must be positive"),
        (t.TrimBorder(-1), r"step 1, TrimBorder\(.*negative border"),
    ):
        with pytest.raises(LoweringError, match=message):
            lower(Compose([step]), native_only=True)
    crop = t.RandomResizedCropAndInterpolation(9)
    crop.get_params = lambda *arguments: (0, 0, 1, 1)
    with pytest.raises(LoweringError, match="has forward hooks or a replaced method"):
        lower(Compose([crop]), native_only=True)


def test_erasing_draws_as_timm(timm: ModuleType) -> None:
    """Without a feeder: the shares of erased images and of erased pixels equal timm's."""
    count, edge = 3000, 24
    recipe = lower(timm.create_transform(edge, is_training=True, color_jitter=None, re_prob=0.4))
    image = Image.new("RGB", (40, 40), (255, 0, 0))
    draws = Draws(recipe.columns, 0).batch(0, range(count), [0] * count)
    ours = [(reference_sample(image, recipe, row) == 0).all(0).float().mean().item() for row in draws]
    state = random.getstate()
    random.seed(0)
    erase = timm.random_erasing.RandomErasing(0.4, device="cpu")
    theirs = [(erase(torch.ones(3, edge, edge)) == 0).all(0).float().mean().item() for _ in range(count)]
    random.setstate(state)
    # Hoeffding: each of the two means of values in [0, 1] is off by half of this with a probability of 1e-6 at most.
    bound = 2 * (torch.tensor(2e6).log() / (2 * count)).sqrt().item()
    for measure in (lambda share: share, lambda share: share > 0):
        means = [sum(map(measure, shares)) / count for shares in (ours, theirs)]
        assert abs(means[0] - means[1]) < bound
