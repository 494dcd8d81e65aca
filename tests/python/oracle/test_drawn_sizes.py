"""Steps that draw the size or padding of their output: native batches equal the oracle, and the oracle torchvision."""

from __future__ import annotations

import importlib
import warnings
from io import BytesIO
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace import DataLoader, EncodedImages, ImageArray
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from support import TENSOR, assert_same, blobs, pictures, recipe_of
from torchvision_feed import Feeder

pytestmark = pytest.mark.pixels

PHOTOGRAPHS = pictures(12)
COLOUR = (124, 116, 104)


def drawn_sizes(modules: Any) -> dict[str, list[Any]]:
    """Transforms of headrace or of torchvision v2, with every kind of argument."""
    mode = modules.InterpolationMode
    return {
        "resize": [modules.RandomResize(8, 90)],
        "resize to one size": [modules.RandomResize(31, 32, mode.BICUBIC)],
        "shortest": [modules.RandomShortestSize([16, 20, 55], 70)],
        "shortest of one": [modules.RandomShortestSize(40, interpolation=mode.NEAREST)],
        "jitter": [modules.ScaleJitter((40, 64))],
        "large jitter": [modules.ScaleJitter((64, 30), (1.5, 1.5), mode.LANCZOS)],
        "zoom": [modules.RandomZoomOut()],
        "zoom with a colour": [modules.RandomZoomOut(COLOUR, [1.0, 1.3], 1.0), modules.RandomHorizontalFlip()],
        "zoom by four": [modules.RandomZoomOut(7, (4, 4), 0.9), modules.RandomShortestSize(30)],
    }


NAMES = list(drawn_sizes(T))
each_name = pytest.mark.parametrize("name", NAMES)


@each_name
@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_equal_the_oracle(name: str, device: str | None) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    steps = [T.RandomHorizontalFlip(), T.ColorJitter(0.3), *drawn_sizes(T)[name], T.RandomCrop(36, pad_if_needed=True)]
    transform = T.Compose([*steps, T.RandomAutocontrast(), *TENSOR])
    loader = DataLoader(EncodedImages(PHOTOGRAPHS, None, transform), 5, True, seed=5, num_workers=2, device=device)
    assert not recipe_of(loader).calls
    for _ in range(2):
        assert assert_same(loader, list(loader.reference())) == 3
    assert "0 differ" in str(loader.verify())


@each_name
def test_gray_images_of_one_size_equal_the_oracle(name: str) -> None:
    if name == "zoom with a colour":
        pytest.skip("a gray image has no colour")
    digits = np.random.default_rng(2).integers(0, 256, (30, 28, 28), dtype=np.uint8)
    transform = T.Compose([*drawn_sizes(T)[name], T.CenterCrop(30), T.ToTensor()])
    loader = DataLoader(ImageArray(digits, None, transform), 7, seed=1)
    assert not recipe_of(loader).calls
    assert_same(loader, list(loader.reference()))


def test_images_of_several_sizes() -> None:
    """Without a step that makes one size, a collate_fn gets images of their own sizes."""
    transform = T.Compose([T.RandomResize(8, 20), T.RandomZoomOut(), T.ToTensor()])
    loader = DataLoader(EncodedImages(PHOTOGRAPHS, None, transform), 6, seed=3, num_workers=2, collate_fn=list)
    assert loader.native
    for made, expected in zip(loader, loader.reference(), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(made, expected, strict=True))
        assert len({image.shape for image in made}) > 1


def odd_images(images: list[Image.Image]) -> list[Image.Image]:
    """Images of every shape, and those of 1 to 16 pixels."""
    random = np.random.default_rng(1)
    shapes = [(1, 1), (1, 2), (2, 1), (1, 16), (16, 1), (3, 5), (4, 4), (400, 3), (2, 300)]
    return [*images, *(Image.fromarray(random.integers(0, 256, (*shape, 3), dtype=np.uint8)) for shape in shapes)]


@pytest.mark.parametrize("name", ["resize", "shortest of one", "zoom", "zoom with a colour"])
def test_files_of_odd_shapes_equal_the_oracle(images: list[Image.Image], name: str) -> None:
    files = []
    for number, image in enumerate(odd_images(images)):
        out = BytesIO()
        image.save(out, "JPEG", quality=92, subsampling=number % 3)
        files.append(out.getvalue())
    transform = T.Compose([*drawn_sizes(T)[name], T.RandomCrop(20, pad_if_needed=True), T.ToTensor()])
    loader = DataLoader(EncodedImages(files, None, transform), 8, seed=4, num_workers=2)
    assert not recipe_of(loader).calls
    assert assert_same(loader, list(loader.reference())) > 1


def outcome(function: Any, *arguments: Any) -> torch.Tensor | str:
    """The tensor, or the words of the error."""
    try:
        made = function(*arguments)
    except ValueError as error:
        return str(error)
    return made.as_subclass(torch.Tensor)


def same_outcome(a: torch.Tensor | str, b: torch.Tensor | str) -> bool:
    return torch.equal(a, b) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else a == b


def assert_is_theirs(images: list[Image.Image], feeder: Feeder, transform: Any, count: int) -> None:
    """The oracle equals torchvision's or timm's own code on the same draws."""
    recipe = lower(transform, native_only=True, may_vary=True)
    rows = Draws(recipe.columns, 17).batch(1, np.arange(count), np.zeros(count, np.int64))
    tensors = 0
    for image in images:
        for row in rows.tolist():
            made = outcome(reference_sample, image, recipe, row)
            assert same_outcome(made, outcome(feeder, transform, image, recipe, row)), (image.size, row)
            tensors += isinstance(made, torch.Tensor)
    assert tensors > 2 * count


@each_name
def test_the_oracle_is_torchvision(
    torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch, images: list[Image.Image], name: str
) -> None:
    v2 = torchvision.transforms.v2
    transform = v2.Compose([*drawn_sizes(v2)[name], v2.PILToTensor()])
    assert_is_theirs(odd_images(images), Feeder(monkeypatch), transform, 4)


@pytest.fixture(scope="module")
def timm(torchvision: ModuleType) -> ModuleType:
    pytest.importorskip("timm", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("timm.data.transforms")


TIMMS = {
    "RandomCropOrPad": ["8", "(30, 5), COLOUR", "40, 9, 'edge'", "(3, 60), padding_mode='symmetric'"],
    "RandomPad": ["(30, 80)", "(1, 1)", "(64, 20), COLOUR"],
    "TrimBorder": ["0", "1", "7"],
    "ResizeKeepRatio": [
        "40, 0.5, random_scale_prob=0.7",
        "(20, 50), 1, 'bicubic', random_scale_prob=1.0, random_scale_range=(0.3, 3), random_scale_area=True",
        "32, random_aspect_prob=0.5, random_scale_prob=0.5, interpolation='random'",
        "(20, 30), 0, 'lanczos', random_aspect_prob=1, random_aspect_range=(0.2, 4)",
    ],
}


def timms(timm: Any) -> list[Any]:
    return [eval(f"timm.{n}({a})", {"timm": timm, "COLOUR": COLOUR}) for n, calls in TIMMS.items() for a in calls]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(sum(map(len, TIMMS.values()))))
def test_the_oracle_is_timm(
    timm: ModuleType, monkeypatch: pytest.MonkeyPatch, images: list[Image.Image], number: int
) -> None:
    feeder = Feeder(monkeypatch)
    feeder.feed_timm()
    transform = T.Compose([timms(timm)[number], T.PILToTensor()])
    shapes = [
        image
        for image in odd_images(images)
        if type(transform.transforms[0]).__name__ != "TrimBorder" or min(image.size) > 14
    ]
    assert_is_theirs(shapes, feeder, transform, 4)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(sum(map(len, TIMMS.values()))))
@pytest.mark.parametrize("device", [None, "emulated"])
def test_timms_batches_equal_the_oracle(timm: ModuleType, number: int, device: str | None) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    steps = [T.RandomHorizontalFlip(), timms(timm)[number], T.RandomVerticalFlip(), T.CenterCrop(33)]
    loader = DataLoader(blobs(12, T.Compose([*steps, *TENSOR])), 5, seed=5, num_workers=2, device=device)
    assert not recipe_of(loader).calls
    assert assert_same(loader, list(loader.reference())) == 3


def test_arguments_that_no_native_step_has(torchvision: ModuleType) -> None:
    v2 = torchvision.transforms.v2
    for transform, why in (
        (v2.RandomResize(9, 9), "max_size must exceed min_size"),
        (v2.RandomShortestSize([]), "positive numbers of pixels"),
        (v2.RandomShortestSize([0, 3]), "positive numbers of pixels"),
        (v2.ScaleJitter((9, 9), (0.0, 1.0)), "positive"),
        (v2.RandomZoomOut((1, 2)), "number of elements in 'fill'"),
    ):
        with pytest.raises(LoweringError, match=why):
            lower(v2.Compose([transform, v2.CenterCrop(8), v2.PILToTensor()]), native_only=True)
    with pytest.raises(LoweringError, match="kernel of torch"):
        lower(v2.Compose([v2.ToImage(), v2.RandomResize(8, 9), v2.CenterCrop(8)]), native_only=True)
