"""ColorJitter and RandomPhotometricDistort of byte tensors: natively and by the oracle they equal torchvision's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace._recipe.steps.steps as S
from headrace import DataLoader, EncodedImages
from headrace._lowering import lower
from headrace._recipe.arithmetic import tensor_rule
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.pil_tensor import pil_to_tensor
from made_everywhere import assert_made
from support import MEAN, STD, pictures

pytestmark = [pytest.mark.pixels, pytest.mark.slow, pytest.mark.usefixtures("native_tensors")]

CHANGES = ("brightness", "contrast", "saturation", "hue")
SIZES = ((48, 48), (64, 48), (16, 4), (1, 1), (16, 1), (1, 16), (2, 3), (3, 3), (16, 15), (2, 200), (200, 2))
PERMUTATIONS = list(itertools.permutations(range(3)))
#: Parts of a turn: none, the bounds, sixths and numbers whose sum with a hue is rounded.
TURNS = (0.0, -0.5, 0.5, 1 / 6, -1 / 6, 1 / 3, 0.1, -0.1, 1e-9, -1e-9, 2**-25, -(2**-26), 0.4999999, -0.037)


@pytest.fixture(scope="module")
def drawings(images: list[Image.Image]) -> list[Image.Image]:
    """RGB and gray images: squares, usual, of 1 to 16 pixels, of extreme shapes, of few colours, of one."""
    rgb = [images[number % 5].resize(size) for number, size in enumerate(SIZES)]
    gray = [one.convert("L") for one in (rgb[0], rgb[3], images[5], images[7])]
    return [*rgb, images[8], *gray, Image.new("RGB", (16, 16), (200, 0, 55)), Image.new("RGB", (16, 16), (9, 9, 9))]


def recipe_of(T: Any, transform: Any, image: Image.Image) -> Any:
    steps = T.Compose([T.PILToTensor(), transform])
    size, channels = (image.height, image.width), len(image.getbands())
    return lower(steps, size=size, channels=channels, native_only=True)


def even(image: Image.Image) -> bool:
    """Whether Contrast of an image of this size is native."""
    return tensor_rule.is_rounding_uniform(len(image.getbands()) * image.width * image.height)


def rows_of(recipe: Any, count: int) -> list[list[float]]:
    return Draws(recipe.columns, 3).batch(0, np.arange(count), np.zeros(count, np.int64)).tolist()


def changed(T: Any, values: torch.Tensor, name: str, factor: float) -> torch.Tensor:
    """torchvision's own function."""
    made: torch.Tensor = getattr(T.functional, f"adjust_{name}")(values, factor)
    return made


def names_of(recipe: Any) -> list[str]:
    """The changes that a ColorJitter was lowered to, in the order of their columns."""
    known = {S.Brightness: 0, S.TensorContrast: 1, S.TensorSaturation: 2, S.TensorHue: 3}
    (step,) = recipe.steps
    done = [one for (one,) in step.branches] if isinstance(step, S.Shuffled) else [step]  # one has no order
    return [CHANGES[known[type(one)]] for one in done]


@pytest.mark.parametrize("red", [0, 1, 64, 127, 200, 254, 255])
def test_hue_of_every_green_and_blue(T: ModuleType, red: int) -> None:
    green, blue = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    image = Image.fromarray(np.stack([np.full_like(green, red), green, blue], axis=-1))
    recipe = recipe_of(T, T.ColorJitter(hue=0.5), image)
    assert len(recipe.columns) == 1
    rows = [[turn] for turn in TURNS]
    expected = [changed(T, pil_to_tensor(image), "hue", turn) for turn in TURNS]
    assert len({one.numpy().tobytes() for one in expected}) >= 8
    assert_made(recipe, image, rows, expected)


@pytest.mark.parametrize("bounds", [0.4, (0.0, 0.3), (1.01, 1.01), (0.0, 0.0), (2.0, 90.0)])
def test_color_jitter(T: ModuleType, drawings: list[Image.Image], bounds: float | tuple[Any, ...]) -> None:
    for image in drawings:
        jitter = T.ColorJitter(bounds, bounds if even(image) else 0, bounds, 0.5)
        recipe = recipe_of(T, jitter, image)
        names = names_of(recipe)
        assert set(CHANGES) - set(names) <= {"contrast", *(("saturation", "hue") if image.mode == "L" else ())}
        orders = list(itertools.permutations(range(len(names))))
        rows, expected = rows_of(recipe, 48), []
        for row in rows:
            made = pil_to_tensor(image)
            order = orders[int(row[recipe.steps[0].draw] * len(orders))] if len(names) > 1 else (0,)
            for number in order:
                made = changed(T, made, names[number], row[number])
            expected.append(made)
        assert_made(recipe, image, rows, expected)


def test_photometric_distort(torchvision: ModuleType, drawings: list[Image.Image]) -> None:
    v2 = torchvision.transforms.v2
    for image in (one for one in drawings if even(one)):
        distort = v2.RandomPhotometricDistort(p=0.6)
        recipe = recipe_of(v2, distort, image)
        rows, expected = rows_of(recipe, 64), []
        for row in rows:
            # Two columns of each change: whether it is done, its factor; whether contrast is early; the permutation.
            factors = {name: row[2 * at + 1] if row[2 * at] < 0.6 else None for at, name in enumerate(CHANGES)}
            found: dict[str, Any] = {f"{name}_factor": factor for name, factor in factors.items()}
            found["contrast_before"] = row[8] < 0.5
            permuted = image.mode == "RGB" and row[10] < 0.6
            found["channel_permutation"] = list(PERMUTATIONS[int(row[9] * 6)]) if permuted else None
            expected.append(distort.transform(pil_to_tensor(image), found))
        assert_made(recipe, image, rows, expected)


@pytest.mark.parametrize("device", [None, "emulated"])
def test_a_loader_with_jitter_of_tensors(torchvision: ModuleType, device: str | None) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    T = torchvision.transforms.v2
    steps = [T.RandomResizedCrop(48), T.ToImage(), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomPhotometricDistort()]
    steps += [T.ToDtype(torch.float32, scale=True), T.Normalize(MEAN, STD)]
    dataset = EncodedImages(pictures(40), range(40), T.Compose(steps))
    loader = DataLoader(dataset, 8, shuffle=True, seed=5, num_workers=2, device=device)
    assert loader.native and "called in" not in str(loader.explain())
    assert loader.verify(5).batches == 5


@pytest.mark.parametrize(
    ("make", "size", "reason"),
    [
        (lambda T: T.ColorJitter((0, 2e6)), (16, 16), "overflow on a tensor"),
        (lambda T: T.ColorJitter(contrast=0.4), (300, 300), "sums up 90000 pixels"),
        (lambda T: T.ColorJitter(saturation=0.4), None, "the size of the image is not known"),
    ],
)
def test_refused(T: ModuleType, make: Callable[..., Any], size: tuple[Any, ...] | None, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        lower(T.Compose([T.PILToTensor(), make(T)]), size=size, native_only=True, may_vary=True)
