"""Random rotations, affine maps and perspectives: native batches equal the oracle, and the oracle torchvision."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace._recipe.steps.steps as S
from headrace import DataLoader, EncodedImages, ImageArray
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from headrace._oracle.choice_steps import apply_steps
from headrace._recipe.draws.draws import Draws
from support import TENSOR, assert_same, pictures, recipe_of

pytestmark = pytest.mark.pixels

FILTERS = ("nearest", "bilinear", "bicubic")
COLOUR = (124, 116, 104)
DIGITS = np.random.default_rng(2).integers(0, 256, (30, 28, 28), dtype=np.uint8)
PHOTOGRAPHS = pictures(24)


def warps(modules: Any, filter: str) -> dict[str, Any]:
    """Transforms of headrace, or of torchvision v1 or v2, with every kind of argument."""
    mode = modules.InterpolationMode(filter)
    return {
        "rotation": modules.RandomRotation(30, mode),
        "off-centre": modules.RandomRotation((-200, 300), mode, center=[3, 40.5], fill=COLOUR),
        "quarter turns": modules.RandomRotation((90, 90), mode, fill=7),
        "half turns": modules.RandomRotation([180, 180], mode),
        "affine": modules.RandomAffine(20, (0.1, 0.3), (0.7, 1.4), 15, mode, COLOUR),
        "affine, two shears": modules.RandomAffine(0, None, None, (-20, 30, -10, 5), mode, center=(0, 0)),
        "affine of nothing": modules.RandomAffine(0, interpolation=mode),
        "shift": modules.RandomAffine(0, (0.5, 0.0), interpolation=mode, fill=200),
        "scale": modules.RandomAffine((0, 0), scale=(0.2, 3), interpolation=mode, fill=[9]),
        "perspective": modules.RandomPerspective(0.5, 0.7, mode),
        "strong perspective": modules.RandomPerspective(1, 1, mode, COLOUR),
    }


NAMES = list(warps(T, "nearest"))
each_filter = pytest.mark.parametrize("filter", FILTERS)
each_name = pytest.mark.parametrize("name", NAMES)


@each_name
@each_filter
@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_equal_the_oracle(name: str, filter: str, device: str | None) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    steps = [T.RandomResizedCrop(40), T.RandomHorizontalFlip(), T.ColorJitter(0.3), warps(T, filter)[name]]
    loader = DataLoader(
        EncodedImages(PHOTOGRAPHS, None, T.Compose([*steps, T.RandomAutocontrast(), *TENSOR])),
        *(9, True),
        seed=5,
        num_workers=2,
        device=device,
    )
    assert not recipe_of(loader).calls
    for _ in range(2):
        assert assert_same(loader, list(loader.reference())) == 3


@each_name
@each_filter
def test_gray_images_equal_the_oracle(name: str, filter: str) -> None:
    transform = warps(T, filter)[name]
    if np.ndim(getattr(transform, "fill", 0)) and len(transform.fill) == 3:
        transform.fill, transform._fill = 90, {"others": 90}
    loader = DataLoader(
        ImageArray(DIGITS, None, T.Compose([T.RandomVerticalFlip(), transform, T.ToTensor()])), 7, seed=1
    )
    assert not recipe_of(loader).calls
    assert_same(loader, list(loader.reference()))


@each_name
@each_filter
@pytest.mark.parametrize("device", [None, "emulated"])
def test_warps_of_decoded_images_before_a_crop_equal_the_oracle(name: str, filter: str, device: str | None) -> None:
    """Only what the crop needs is warped, and only what that needs is decoded."""
    if device:
        pytest.importorskip("headrace._gpu")
    first = [T.RandomCrop(40, pad_if_needed=True)] if "perspective" in name else []  # which needs one size
    for crop in (T.RandomResizedCrop(24), T.CenterCrop(30)):
        steps = T.Compose([*first, warps(T, filter)[name], crop, T.RandomHorizontalFlip(), *TENSOR])
        loader = DataLoader(EncodedImages(PHOTOGRAPHS, None, steps), 9, True, seed=6, num_workers=2, device=device)
        assert not recipe_of(loader).calls
        assert assert_same(loader, list(loader.reference())) == 3


@each_filter
@pytest.mark.parametrize("center", [None, (5, 60)])
def test_expanded_rotations_equal_the_oracle(filter: str, center: tuple[Any, ...] | None) -> None:
    for degrees, then in (((-180, 180), T.CenterCrop(50)), ((90, 90), T.Resize((33, 20))), ((0, 270), T.CenterCrop(9))):
        rotation = T.RandomRotation(degrees, filter, expand=True, center=center, fill=COLOUR)
        steps = [T.Resize(48), T.RandomHorizontalFlip(), rotation, T.RandomInvert(), T.RandomHorizontalFlip(), then]
        loader = DataLoader(EncodedImages(PHOTOGRAPHS, None, T.Compose([*steps, *TENSOR])), 8, seed=3, num_workers=2)
        assert not recipe_of(loader).calls
        assert_same(loader, list(loader.reference()))


@pytest.mark.parametrize("device", [None, "emulated"])
def test_a_second_quarter_turn_gives_back_the_size_that_the_first_one_changed(device: str | None) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    turn = T.RandomRotation((90, 90), expand=True)
    dataset = EncodedImages(PHOTOGRAPHS, None, T.Compose([T.Resize((60, 40)), turn, turn, T.RandomCrop(30), *TENSOR]))
    loader = DataLoader(dataset, 8, seed=3, num_workers=2, device=device)
    assert assert_same(loader, list(loader.reference())) == 3


@each_filter
def test_expanded_rotations_of_several_sizes(filter: str) -> None:
    steps = [T.Resize(20), T.RandomRotation(180, filter, expand=True), T.RandomAffine(9, scale=(0.5, 1)), T.ToTensor()]
    dataset = EncodedImages(PHOTOGRAPHS, None, T.Compose(steps))
    loader = DataLoader(dataset, 6, seed=3, num_workers=2, collate_fn=list)
    for made, expected in zip(loader, loader.reference(), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(made, expected, strict=True))


def oracle(transform: Any, image: Image.Image, seed: int) -> tuple[Image.Image, S.Step, list[float]]:
    """The image after a transform, as the oracle makes it, with its step and the draws."""
    recipe = lower(
        T.Compose([transform, T.PILToTensor()]),
        size=(image.height, image.width),
        channels=len(image.getbands()),
        native_only=True,
    )
    draws = Draws(recipe.columns, seed).batch(0, [3], [0])[0].tolist()
    return apply_steps(recipe.steps, image, draws), recipe.steps[0], draws


@pytest.mark.parametrize("home", ["v1", "v2"])
@each_name
@each_filter
def test_the_oracle_is_torchvision(torchvision: ModuleType, home: str, name: str, filter: str) -> None:
    """torchvision's own functions, with the draws as parameters."""
    modules = torchvision.transforms if home == "v1" else torchvision.transforms.v2
    rng = np.random.default_rng(4)
    transform = warps(modules, filter)[name]
    for seed in range(25):
        width, height = (int(edge) for edge in rng.integers(2, 60, 2))
        image = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        try:
            made, step, draws = oracle(transform, image, seed)
        except ValueError as error:
            assert "full rank" in str(error) and name == "strong perspective"
            continue
        assert made.tobytes() == by_torchvision(modules, transform, step, draws, image).tobytes(), (seed, image.size)


def by_torchvision(modules: Any, transform: Any, step: S.Step, draws: list[float], image: Image.Image) -> Image.Image:
    """What torchvision's functional does with the parameters that are drawn."""
    mode, fill, functional = transform.interpolation, transform.fill, modules.functional
    if isinstance(step, S.RandomRotate):
        return functional.rotate(
            image, draws[step.draw], mode, expand=transform.expand, center=transform.center, fill=fill
        )
    if isinstance(step, S.RandomAffine):
        angle, x, y, scale, *shear = draws[step.draw : step.draw + 6]
        shift = [round(x * image.width), round(y * image.height)]
        return functional.affine(
            image, angle, shift, scale, shear, interpolation=mode, fill=fill, center=transform.center
        )
    assert isinstance(step, S.When)
    if draws[step.draw] >= step.p:
        return image
    (warp,) = step.steps
    assert isinstance(warp, S.RandomPerspective)
    draw = warp.draw
    numbers = iter(draws[draw : draw + 8])
    width, height = image.size
    x, y = int(transform.distortion_scale * (width // 2)), int(transform.distortion_scale * (height // 2))

    def randint(low: int, high: int) -> int:
        return low + int(next(numbers) * (high - low))

    end = [
        [randint(0, x + 1), randint(0, y + 1)],
        [randint(width - x - 1, width), randint(0, y + 1)],
        [randint(width - x - 1, width), randint(height - y - 1, height)],
        [randint(0, x + 1), randint(height - y - 1, height)],
    ]
    start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    return functional.perspective(image, start, end, mode, fill=fill)


def test_views_draw_warps_of_their_own() -> None:
    first = T.Compose([T.RandomRotation(40, "bilinear"), T.RandomPerspective(0.4), T.ToTensor()])
    second = T.Compose([T.RandomAffine(10, (0.2, 0.2), shear=9), T.RandomHorizontalFlip(), T.ToTensor()])
    steps = T.Compose([T.RandomResizedCrop(32), T.RandomRotation(5), T.Views([first, second, second])])
    loader = DataLoader(EncodedImages(PHOTOGRAPHS, None, steps), 8, seed=2, num_workers=2)
    assert loader.native
    for made, expected in zip(loader, loader.reference(), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(made, expected, strict=True))
        assert not torch.equal(made[1], made[2])


def test_what_is_not_native_says_why() -> None:
    def refusal(transform: Any, size: tuple[int, int] | None = None) -> str:
        with pytest.raises(LoweringError) as raised:
            lower(T.Compose([transform, T.PILToTensor()]), size=size, native_only=True, may_vary=True)
        return raised.value.reason

    assert "depend on the image's size, which varies here" in refusal(T.RandomPerspective())
    assert "Pillow cannot warp with interpolation lanczos" in refusal(T.RandomRotation(9, "lanczos"), (9, 9))
    assert "bounds that torch does not draw between" in refusal(T.RandomRotation((9, -9)), (9, 9))
    assert "bounds that torch does not draw between" in refusal(T.RandomRotation(float("inf")), (9, 9))
    assert "two finite numbers" in refusal(T.RandomAffine(9, center=(1, float("nan"))), (9, 9))
    assert "does not match the number of channels" in refusal(T.RandomAffine(9, fill=(1, 2)), (9, 9))


def test_corners_on_one_line_are_an_error_of_the_sample() -> None:
    steps = [T.Resize((2, 2)), T.RandomPerspective(1.0, 1.0), T.ToTensor()]
    loader = DataLoader(EncodedImages(PHOTOGRAPHS, None, T.Compose(steps)), 8, seed=2)
    with pytest.raises(ValueError, match=r"plan: sample \d+.*three corners onto one line"):
        next(iter(loader))
    with pytest.raises(ValueError, match="full rank"):
        next(iter(loader.reference()))
    steps[1] = T.RandomPerspective(1.0, 0.0)
    loader = DataLoader(EncodedImages(PHOTOGRAPHS, None, T.Compose(steps)), 8, seed=2)
    assert_same(loader, list(loader.reference()))
