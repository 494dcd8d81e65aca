"""The oracle equals torchvision itself, v1 and v2, on the same draws: colours, random choices and orders, erasing."""

from __future__ import annotations

import itertools
import math
import re
from types import ModuleType
from typing import Any

import pytest
import torch
from PIL import Image, ImageOps

from against_torchvision import MEAN, STD, assert_equal_on
from headrace._lowering import LoweringError, lower
from headrace._oracle.choice_steps import decode_permutation
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps import steps as S
from torchvision_feed import Feeder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drawings(images: list[Image.Image]) -> list[Image.Image]:
    """Images of every shape, and of few colours: one colour, two, all bytes at once, every hue."""
    ramp = Image.frombytes("L", (16, 16), bytes(range(256)))
    full = ramp.point([255] * 256)
    return [
        *images,
        Image.new("RGB", (20, 30), (7, 7, 7)),
        Image.new("RGB", (9, 40), (200, 0, 55)),
        Image.merge("RGB", (ramp, ramp.rotate(90), ramp.point(lambda byte: 40 * (byte > 99)))),
        Image.merge("HSV", (ramp, full, ramp.rotate(90))).convert("RGB"),
    ]


def check(drawings: list[Image.Image], feeder: Feeder, T: ModuleType, *steps: Any, count: int = 6) -> None:
    assert_equal_on(drawings, feeder, T.Compose([*steps, T.CenterCrop(33), T.PILToTensor()]), count)


@pytest.mark.parametrize(
    "factors",
    [
        {"brightness": 0.4},
        {"brightness": (0.0, 0.0)},
        {"brightness": (1.0, 9.0)},
        {"contrast": 0.9},
        {"contrast": (2.0, 60.0)},
        {"saturation": 1.5},
        {"saturation": (0.0, 0.01)},
        {"hue": 0.5},
        {"hue": (-0.5, -0.5)},
        {"hue": (0.001, 0.02)},
        {"brightness": 0.4, "hue": 0.1},
        {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4},
        {"brightness": 0.8, "contrast": 0.8, "saturation": 0.8, "hue": 0.2},
    ],
    ids=str,
)
def test_color_jitter(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], factors: dict[str, Any]) -> None:
    check(drawings, feeder, T, T.ColorJitter(**factors), count=12)
    check(drawings, feeder, T, T.RandomResizedCrop(40), T.ColorJitter(**factors), count=3)


def test_color_jitter_of_gray_images(T: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    jitter = T.ColorJitter(0.5, 0.5, 0.5, 0.3)
    check(drawings, feeder, T, T.Grayscale(), jitter, T.RandomGrayscale(1.0), count=8)
    assert isinstance(lower(T.Compose([T.CenterCrop(8), T.Grayscale(), jitter, T.PILToTensor()])).steps[2], S.Shuffled)


@pytest.mark.parametrize("p", [0.0, 0.4, 1.0])
def test_what_is_done_at_times(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], p: float) -> None:
    for step in (
        T.RandomGrayscale(p),
        T.RandomInvert(p),
        T.RandomAutocontrast(p),
        T.RandomEqualize(p),
        T.RandomPosterize(3, p),
        T.RandomSolarize(100, p),
    ):
        check(drawings, feeder, T, step)
        check(drawings, feeder, T, T.Grayscale(), step, count=3)


@pytest.mark.parametrize("factor", [0, 0.1, 0.99, 1, 1.01, 2, 7.5, 300])
def test_sharpness(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], factor: float) -> None:
    check(drawings, feeder, T, T.RandomAdjustSharpness(factor, 1.0), count=1)
    check(drawings, feeder, T, T.RandomAdjustSharpness(factor, 0.5), T.Grayscale(), count=2)


def test_posterize_to_no_bits_is_pillows(T: ModuleType) -> None:
    """Pillow 13 raises; older versions make a black image."""
    steps = [T.CenterCrop(8), T.RandomPosterize(0, 1.0), T.PILToTensor()]
    try:
        ImageOps.posterize(Image.new("L", (1, 1)), 0)
    except ValueError as error:
        with pytest.raises(LoweringError, match=re.escape(str(error))):
            lower(T.Compose(steps))
    else:
        recipe = lower(T.Compose(steps), native_only=True)
        assert not reference_sample(Image.new("RGB", (9, 9), "red"), recipe, [0.0] * 9).any()


def test_channels_in_any_order(torchvision: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    T = torchvision.transforms.v2
    check(drawings, feeder, T, T.RandomChannelPermutation(), count=24)
    check(drawings, feeder, T, T.Grayscale(), T.RandomChannelPermutation(), count=1)


@pytest.mark.parametrize("gray", [False, True])
def test_photometric_distortion(torchvision: ModuleType, drawings: list[Image.Image], gray: bool) -> None:
    """torchvision's transform with the parameters that it would have drawn."""
    T = torchvision.transforms.v2
    names = ("brightness", "contrast", "saturation", "hue")
    distort = T.RandomPhotometricDistort((0.5, 2), (0, 3), (0.2, 3), (-0.5, 0.5), 0.6)
    recipe = lower(T.Compose([T.CenterCrop(33), distort, T.PILToTensor()]), channels=1 if gray else 3, native_only=True)
    draws = Draws(recipe.columns, 3).batch(0, range(40), [0] * 40)
    seen = set()
    for i, row in enumerate(draws.tolist()):
        image = drawings[i % len(drawings)].convert("L" if gray else "RGB")
        params = {f"{name}_factor": row[2 * k + 1] if row[2 * k] < 0.6 else None for k, name in enumerate(names)}
        permuted = not gray and row[10] < 0.6
        order = list(itertools.permutations(range(3)))[int(row[9] * 6)] if permuted else None
        params |= {"contrast_before": row[8] < 0.5, "channel_permutation": order}
        seen.add((*(value is None for value in params.values()), params["contrast_before"]))
        expected = T.PILToTensor()(distort.transform(T.CenterCrop(33)(image), params))
        assert torch.equal(reference_sample(image, recipe, row), expected)
    assert len(seen) > 15  # of 32 ways for a gray image, 64 for another


@pytest.mark.parametrize("bits", range(1, 9))
def test_posterize(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], bits: int) -> None:
    check(drawings, feeder, T, T.RandomPosterize(bits, 1.0), count=1)


@pytest.mark.parametrize("threshold", [-3, 0, 0.5, 1, 127.5, 128, 255, 255.5, 300])
def test_solarize(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], threshold: float) -> None:
    check(drawings, feeder, T, T.RandomSolarize(threshold, 1.0), count=1)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("padding", [0, 5, [3], (4, 1), [1, 2, 0, 70]])
def test_pad(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], padding: Any, mode: str) -> None:
    check(drawings, feeder, T, T.Pad(padding, (7, 300, -2), mode), count=1)
    check(drawings, feeder, T, T.RandomCrop(20, pad_if_needed=True), T.Pad(padding, 9, mode), count=2)


@pytest.mark.parametrize("fill", [5, 9.7, (1, 2, 3), [4.5]])
def test_pad_fill(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], fill: Any) -> None:
    check(drawings, feeder, T, T.Pad(6, fill), count=1)


def test_pad_fill_by_type(torchvision: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    T = torchvision.transforms.v2
    for fill in ({Image.Image: (9, 8, 7), "others": 1}, {"others": 3}, {torch.Tensor: 3}, None):
        check(drawings, feeder, T, T.Pad(6, fill), count=1)


def test_size_behind_pad(T: ModuleType) -> None:
    recipe = lower(T.Compose([T.Resize((20, 30)), T.Pad([1, 2, 3, 4]), T.PILToTensor()]))
    assert (recipe.height, recipe.width) == (26, 34)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_random_apply(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], p: float) -> None:
    some = [T.RandomHorizontalFlip(), T.Compose([T.ColorJitter(0.4, 0.4), T.Pad(3)]), T.RandomInvert()]
    check(drawings, feeder, T, T.RandomApply(some, p))
    check(drawings, feeder, T, T.RandomApply(torch.nn.ModuleList([T.RandomSolarize(99, 0.7)]), p))


def test_random_choice(T: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    for p in (None, [1, 1, 1, 1], [0.1, 0.0, 0.2, 0.3], [0, 0, 7, 0]):
        ways = [T.RandomInvert(), T.Resize((30, 20)), T.RandomCrop(50, pad_if_needed=True), T.ColorJitter(hue=0.5)]
        check(drawings, feeder, T, T.RandomChoice(ways, p), count=16)


def test_random_order(T: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    ways = [T.ColorJitter(0.9), T.RandomSolarize(90, 0.8), T.RandomEqualize(0.6), T.RandomVerticalFlip()]
    check(drawings, feeder, T, T.RandomOrder(ways), count=30)
    moving = [T.RandomResizedCrop((30, 50)), T.Pad(4, fill=250), T.Grayscale(3), T.CenterCrop(40)]
    check(drawings, feeder, T, T.RandomOrder(moving), count=20)


def test_containers_in_containers(T: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    inner = T.RandomOrder([T.RandomInvert(), T.RandomApply([T.ColorJitter(0.6, 0.6, 0.6, 0.4)], 0.8)])
    choice = T.RandomChoice([inner, torch.nn.Sequential(T.RandomHorizontalFlip(), T.RandomPosterize(2)), T.Pad(1)])
    check(drawings, feeder, T, T.RandomApply([T.RandomResizedCrop(40), choice, T.RandomGrayscale(0.3)], 0.9), count=40)


def test_permutations_are_those_of_itertools() -> None:
    for n in range(6):
        numbers = range(math.factorial(n))
        made = [decode_permutation(n, (number + 0.5) / math.factorial(n)) for number in numbers]
        assert made == [list(order) for order in itertools.permutations(range(n))]
    assert decode_permutation(18, 1 - 2**-53) == list(range(18))[::-1]
    assert decode_permutation(18, 0.0) == list(range(18))


def floats(T: ModuleType) -> list:
    return [T.PILToTensor(), T.ConvertImageDtype(torch.float32)]


ERASINGS = [
    {"p": 1.0},
    {"p": 0.5, "scale": (0.1, 0.9), "ratio": (0.1, 9.0)},
    {"p": 1.0, "scale": (0.9, 1.0), "ratio": (0.1, 0.2)},  # mostly no try fits
    {"p": 1.0, "scale": (0.0, 0.001)},  # mostly empty
    {"p": 1.0, "value": 7},
    {"p": 1.0, "value": (0.1, 100.7, 2.5)},
    {"p": 1.0, "value": [3.2], "inplace": True},
    {"p": 0.0},
]


@pytest.mark.parametrize("options", ERASINGS, ids=str)
def test_random_erasing(T: ModuleType, feeder: Feeder, drawings: list[Image.Image], options: dict[str, Any]) -> None:
    ends = (
        [T.PILToTensor(), T.RandomErasing(**options)],
        [*floats(T), T.Normalize(MEAN, STD), T.RandomErasing(**options)],
        [T.PILToTensor(), T.RandomErasing(**options), T.ConvertImageDtype(torch.float16), T.Normalize(MEAN, STD)],
        [*floats(T), T.RandomErasing(**options), T.RandomHorizontalFlip(), T.ConvertImageDtype(torch.bfloat16)],
    )
    for end in ends:
        assert_equal_on(drawings, feeder, T.Compose([T.Resize((37, 52)), *end]), 4)


def test_erasing_twice_between_flips(T: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    steps = [
        *(T.RandomHorizontalFlip(), T.Resize((37, 52)), T.PILToTensor(), T.RandomVerticalFlip()),
        *(T.RandomErasing(value=(3, 60, 9)), T.ConvertImageDtype(torch.float32), T.RandomHorizontalFlip()),
        *(T.Normalize(MEAN, STD), T.RandomErasing(value=-4.5), T.RandomVerticalFlip()),
    ]
    assert_equal_on(drawings, feeder, T.Compose(steps), 24)


def test_erasing_of_tv_tensors(torchvision: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    """Later steps still see torchvision's Image class, on which the dtype of ToDtype may depend."""
    T, Kind = torchvision.transforms.v2, torchvision.tv_tensors.Image
    to_float = T.ToDtype({Kind: torch.float32, "others": None}, scale=True)
    steps = [T.ToImage(), T.RandomErasing(1.0, value=9), T.RandomHorizontalFlip(), to_float, T.ToPureTensor()]
    assert_equal_on(drawings, feeder, T.Compose([T.Resize((37, 52)), *steps]), 6)
    erased = lower(T.Compose([T.CenterCrop(9), *steps])).erased
    assert erased is not None and erased[0, 0] == 9 * (1 / 255)


def test_erasing_of_gray_tensors(T: ModuleType, feeder: Feeder, drawings: list[Image.Image]) -> None:
    for value in (0.5, [0.25]):
        steps = [T.Grayscale(), T.CenterCrop(40), *floats(T), T.RandomErasing(1.0, value=value)]
        assert_equal_on(drawings, feeder, T.Compose(steps), 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_erased_is_what_the_oracle_writes(T: ModuleType, drawings: list[Image.Image], dtype: torch.dtype) -> None:
    erasings = [T.RandomErasing(1.0, (0.5, 0.5), (1, 1), value=(0.3, 17, -2)) for _ in range(2)]
    steps = [*floats(T), erasings[0], T.Normalize(MEAN, STD), erasings[1], T.Normalize([0.1] * 3, [0.7] * 3)]
    recipe = lower(T.Compose([T.CenterCrop(24), *steps]), dtype=dtype)
    assert recipe.erased is not None and recipe.erased.shape == (2, 3)
    assert recipe.erased.dtype == dtype and type(recipe.erased) is torch.Tensor
    row = Draws(recipe.columns, 4).batch(0, [1], [0])[0]
    for number, later in enumerate((steps[3:], steps[5:])):
        one = torch.tensor([0.3, 17, -2]).reshape(3, 1, 1)
        for step in later[::2]:
            one = step(one)
        assert torch.equal(recipe.erased[number], one.to(dtype).flatten())
    made = reference_sample(drawings[0], recipe, row)
    found = [(made == value[:, None, None]).all(0).sum().item() for value in recipe.erased]
    assert found[1] == 17**2 and 0 < found[0] < 17**2  # the second box overlaps the first
