"""Policies and colours of byte tensors: natively and by the oracle they equal torchvision's own."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from aug_mix_ways import fed
from aug_mix_ways import policy_of as mix_of
from PIL import Image
from policy_ways import learned_ways, space_of, ways

from headrace import DataLoader, EncodedImages, ImageArray
from headrace._lowering import lower
from headrace._recipe.arithmetic import tensor_rule
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.pil_tensor import pil_to_tensor
from made_everywhere import assert_made
from support import MEAN, STD, pictures

pytestmark = [pytest.mark.pixels, pytest.mark.slow, pytest.mark.usefixtures("native_tensors")]

OPTIONS = [("nearest", None), ("bilinear", None), ("nearest", 127.5), ("bilinear", 90), ("bilinear", [255, 0.25, 60])]
TINY = ((1, 1), (16, 1), (1, 16), (2, 3), (3, 3), (16, 15), (2, 200))


@pytest.fixture(scope="module")
def drawings(images: list[Image.Image]) -> list[Image.Image]:
    """RGB and gray images: squares, usual, of 1 to 16 pixels, of extreme shapes, of few colours."""
    rgb = [images[number % 5].resize(size) for number, size in enumerate(((48, 48), (64, 48), (16, 4), *TINY))]
    gray = [one.convert("L") for one in (rgb[0], rgb[1], images[5], images[7])]
    return [*rgb, images[8], *gray, Image.new("RGB", (16, 16), (200, 0, 55))]


def without_contrast(policy: Any, image: Image.Image) -> Any:
    """The policy; without Contrast where torch's arithmetic for an image of this size is refused."""
    even = tensor_rule.is_rounding_uniform(len(image.getbands()) * image.width * image.height)
    if not even and hasattr(policy, "_AUGMENTATION_SPACE"):
        policy._AUGMENTATION_SPACE = {k: v for k, v in policy._AUGMENTATION_SPACE.items() if k != "Contrast"}
    return policy


def recipe_of(T: Any, transform: Any, image: Image.Image) -> Any:
    steps = T.Compose([T.PILToTensor(), transform])
    size, channels = (image.height, image.width), len(image.getbands())
    return lower(steps, size=size, channels=channels, native_only=True)


def operated(torchvision: Any, policy: Any, values: torch.Tensor, name: str, magnitude: float) -> torch.Tensor:
    """torchvision's own operation of a tensor (C, H, W), with the fill as its `forward` passes it."""
    if hasattr(policy, "_apply_image_or_video_transform"):
        return policy._apply_image_or_video_transform(values, name, magnitude, policy.interpolation, policy._fill)
    fill = policy.fill
    if fill is not None:
        fill = [float(fill)] * len(values) if isinstance(fill, (int, float)) else [float(one) for one in fill]
    apply = torchvision.transforms.autoaugment._apply_op
    return apply(values, name, magnitude, interpolation=policy.interpolation, fill=fill)


def checked(torchvision: Any, T: Any, policy: Any, image: Image.Image, found: Any) -> int:
    rows, expected = [], []
    for row, operations in found:
        made = pil_to_tensor(image)
        for name, magnitude in operations:
            made = operated(torchvision, policy, made, name, magnitude)
        rows.append(row)
        expected.append(made)
    assert_made(recipe_of(T, policy, image), image, rows, expected)
    return len(rows)


def options(T: Any, number: int, image: Image.Image) -> dict[str, Any]:
    mode, fill = OPTIONS[number % len(OPTIONS)]
    fill = fill[:1] if isinstance(fill, list) and image.mode == "L" else fill
    return {"interpolation": T.InterpolationMode(mode), "fill": fill}


@pytest.mark.parametrize("case", range(len(OPTIONS)))
def test_trivial_augment_wide(T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], case: int) -> None:
    """Every operation, magnitude and sign, with every filter and fill; 90 degrees are a turn by moving pixels in v2."""
    for image in (drawings[case % len(drawings)], drawings[(case + 3) % len(drawings)]):
        policy = without_contrast(T.TrivialAugmentWide(31, **options(T, case, image)), image)
        assert checked(torchvision, T, policy, image, ways(policy, image)) in (623, 623 - 62)
    turns, _ = space_of(policy, 31, image)["Rotate"]
    assert turns is not None and 90.0 in turns


@pytest.mark.parametrize("magnitude", range(31))
def test_rand_augment(T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], magnitude: int) -> None:
    for number, image in enumerate(drawings):
        policy = without_contrast(T.RandAugment(1, magnitude, **options(T, magnitude + number, image)), image)
        assert checked(torchvision, T, policy, image, ways(policy, image)) in (23, 21)


@pytest.mark.parametrize("data", ["IMAGENET", "CIFAR10", "SVHN"])
def test_auto_augment(T: ModuleType, torchvision: ModuleType, drawings: list[Image.Image], data: str) -> None:
    for number, image in enumerate(drawings[:3]):  # of a multiple of 16 values, as some pairs have Contrast
        policy = T.AutoAugment(T.AutoAugmentPolicy[data], **options(T, number, image))
        assert checked(torchvision, T, policy, image, learned_ways(policy, image)) == 300


def test_aug_mix(T: ModuleType, drawings: list[Image.Image], monkeypatch: pytest.MonkeyPatch) -> None:
    for image in (drawings[0], drawings[5]):
        policy = mix_of(T, image)
        recipe = recipe_of(T, policy, image)
        rows = Draws(recipe.columns, 3).batch(0, np.arange(12), np.zeros(12, np.int64)).tolist()
        values = pil_to_tensor(image)
        assert_made(recipe, image, rows, [fed(policy, recipe, image, row, monkeypatch, values) for row in rows])


COLOURS = [
    *(f"RandomAdjustSharpness({factor}, 1)" for factor in (0, 0.3, 1, 1.7, 5)),
    *(f"RandomPosterize({bits}, 1)" for bits in range(9)),
    *(f"RandomSolarize({threshold}, 1)" for threshold in (0, 1, 127.5, 200.1, 255)),
    *(f"{name}(1)" for name in ("RandomGrayscale", "RandomInvert", "RandomAutocontrast", "RandomEqualize")),
]


@pytest.mark.parametrize("call", COLOURS)
def test_colours(T: ModuleType, drawings: list[Image.Image], call: str) -> None:
    """Called directly: with probability 1, which draws nothing that matters."""
    transform = eval(f"T.{call}", {"T": T})
    for image in drawings:
        recipe = recipe_of(T, transform, image)
        assert_made(recipe, image, [[0.0] * len(recipe.columns)], [transform(pil_to_tensor(image))])


@pytest.mark.parametrize("order", range(6))
def test_channels(torchvision: ModuleType, drawings: list[Image.Image], order: int) -> None:
    v2 = torchvision.transforms.v2
    recipe = recipe_of(v2, v2.RandomChannelPermutation(), drawings[0])
    (step,) = recipe.steps
    (permuted,) = step.branches[order]
    values = pil_to_tensor(drawings[0])
    expected = v2.functional.permute_channels(values, list(permuted.order))
    assert_made(recipe, drawings[0], [[(order + 0.5) / 6]], [expected])


@pytest.mark.parametrize("policy", ["RandAugment", "TrivialAugmentWide", "AutoAugment", "AugMix"])
@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_reference_preset_with_tensors(torchvision: ModuleType, policy: str, device: str | None, version: str) -> None:
    """torchvision's reference for classification with its backend for tensors, as references/classification has it."""
    if device:
        pytest.importorskip("headrace._gpu")
    T = torchvision.transforms.v2 if version == "v2" else torchvision.transforms
    mode = T.InterpolationMode("bilinear")
    first = T.ToImage() if version == "v2" else T.PILToTensor()
    steps = [first, T.RandomResizedCrop(48, interpolation=mode, antialias=True), T.RandomHorizontalFlip()]
    steps += [getattr(T, policy)(interpolation=mode)]
    steps += [T.ToDtype(torch.float32, scale=True)] if version == "v2" else [T.ConvertImageDtype(torch.float)]
    steps += [T.Normalize(MEAN, STD), T.RandomErasing(0.5)]
    dataset = EncodedImages(
        pictures(40), range(40), T.Compose([*steps, T.ToPureTensor()] if version == "v2" else steps)
    )
    loader = DataLoader(dataset, 8, shuffle=True, seed=5, num_workers=2, device=device)
    assert loader.native and "called in" not in str(loader.explain())
    assert loader.verify(5).batches == 5


def test_a_step_of_ones_own_behind_it(torchvision: ModuleType) -> None:
    T = torchvision.transforms.v2
    pixels = np.random.default_rng(1).integers(0, 256, (24, 48, 48, 3), np.uint8)
    steps = T.Compose([T.ToImage(), T.TrivialAugmentWide(), T.RandomGrayscale(0.5), lambda image: image[:, ::2]])
    loader = DataLoader(ImageArray(pixels, range(24), transform=steps), 8, seed=5, num_workers=2)
    assert loader.native and str(loader.explain()).count("called in") == 1
    assert loader.verify(3).batches == 3


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda T: T.RandAugment(fill={"others": 3, torch.Tensor: 9}), "fill depends on the class of the image"),
        (lambda T: T.RandAugment(interpolation=T.InterpolationMode.BICUBIC), "filter bicubic"),
        (lambda T: T.RandAugment(magnitude=31), "has no magnitude number 31: there are 31"),
        (lambda T: T.RandomSolarize(300), "threshold must be from 0 to 255"),
        (lambda T: T.RandomPosterize(9), "must be from 0 to 8"),
        (lambda T: type("RandAugment", (T.RandAugment,), {"_apply_op": 1})(), "subclass"),
    ],
)
def test_refused(torchvision: ModuleType, make: Callable[..., Any], reason: str) -> None:
    T = torchvision.transforms.v2
    with pytest.raises(TypeError, match=reason):
        lower(T.Compose([T.ToImage(), make(T)]), size=(16, 16), native_only=True)


def test_sizes_that_vary_are_refused(T: ModuleType) -> None:
    for transform in (T.TrivialAugmentWide(), T.RandomAutocontrast()):
        with pytest.raises(TypeError, match="the size of the image is not known"):
            lower(T.Compose([T.PILToTensor(), transform]), native_only=True, may_vary=True)


def test_version_1_makes_plain_tensors_of_others(torchvision: ModuleType) -> None:
    v1, v2 = torchvision.transforms, torchvision.transforms.v2
    with pytest.raises(TypeError, match="works on a tensor here"):
        lower(v2.Compose([v2.ToImage(), v1.RandomInvert()]), size=(16, 16), native_only=True)
