"""The oracle equals the presets of torchvision's reference scripts, and recipes of papers, on the same draws."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from PIL import Image

from against_torchvision import MEAN, STD, assert_equal_on
from headrace._lowering import LoweringError, lower
from torchvision_feed import Feeder


@pytest.fixture(scope="module")
def pictures(images: list[Image.Image]) -> list[Image.Image]:
    """Images without extreme aspect ratios, which Resize would enlarge to millions of pixels."""
    return [image for image in images if max(image.size) / min(image.size) < 30]


def to_floats(T: ModuleType) -> list:
    """The last steps of torchvision's presets."""
    if T.__name__.endswith("v2"):
        return [T.PILToTensor(), T.ToDtype(torch.float32, scale=True), T.Normalize(MEAN, STD)]
    return [T.PILToTensor(), T.ConvertImageDtype(torch.float32), T.Normalize(MEAN, STD)]


class ClassificationPresetTrain:
    """The preset for training, as references/classification/presets.py composes it on PIL images."""

    def __init__(
        self,
        T: ModuleType,
        crop_size: int,
        interpolation: str = "bilinear",
        hflip_prob: float = 0.5,
        policy: Any = None,
        random_erase_prob: float = 0.0,
    ) -> None:
        mode = T.InterpolationMode(interpolation)
        steps = [T.RandomResizedCrop(crop_size, interpolation=mode, antialias=True)]
        if hflip_prob > 0:
            steps.append(T.RandomHorizontalFlip(hflip_prob))
        if policy is not None:
            steps.append(policy)
        steps.extend(to_floats(T))
        if random_erase_prob > 0:
            steps.append(T.RandomErasing(p=random_erase_prob))
        if T.__name__.endswith("v2"):
            steps.append(T.ToPureTensor())
        self.transforms = T.Compose(steps)

    def __call__(self, image: Any) -> Any:
        return self.transforms(image)


@pytest.mark.parametrize("random_erase_prob", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_classification_preset_for_training(
    T: ModuleType, feeder: Feeder, pictures: list[Image.Image], interpolation: str, random_erase_prob: float
) -> None:
    preset = ClassificationPresetTrain(T, 44, interpolation, random_erase_prob=random_erase_prob)
    assert_equal_on(pictures, feeder, preset.transforms, 8)


def test_classification_preset_without_flips(T: ModuleType, feeder: Feeder, pictures: list[Image.Image]) -> None:
    assert_equal_on(pictures, feeder, ClassificationPresetTrain(T, 30, hflip_prob=0.0).transforms, 4)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_classification_preset_for_evaluation(
    T: ModuleType, feeder: Feeder, pictures: list[Image.Image], interpolation: str
) -> None:
    resize = T.Resize(40, interpolation=T.InterpolationMode(interpolation), antialias=True)
    assert_equal_on(pictures, feeder, T.Compose([resize, T.CenterCrop(35), *to_floats(T)]), 1)


class Doubled(ClassificationPresetTrain):
    """A preset that does more than apply its transforms."""

    def __call__(self, image: Any) -> Any:
        return 2 * self.transforms(image)


def test_a_preset_is_its_transforms_if_that_is_all_it_calls(T: ModuleType) -> None:
    preset = ClassificationPresetTrain(T, 30)
    assert lower(preset, native_only=True) == lower(preset.transforms)
    with pytest.raises(LoweringError, match=r"may do more than apply its transforms; pass its attribute .transf"):
        lower(Doubled(T, 30), native_only=True)


PRESET = """
class Preset:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        return self.transforms(img)
"""


@pytest.mark.parametrize("head", ["", "from __future__ import annotations\n"])
def test_a_preset_of_any_file_is_opened(T: ModuleType, head: str) -> None:
    """A preset is recognised whatever compiler flags the __future__ imports of its file set."""
    names: dict[str, Any] = {"__name__": "theirs"}
    exec(compile(head + PRESET, "theirs.py", "exec", dont_inherit=True), names)
    preset = ClassificationPresetTrain(T, 30)
    assert lower(names["Preset"](preset.transforms), native_only=True) == lower(preset.transforms)


@pytest.mark.parametrize("policy", ["AugMix", "AutoAugment", "RandAugment", "TrivialAugmentWide"])
def test_augmentation_policies_are_native(T: ModuleType, policy: str) -> None:
    preset = ClassificationPresetTrain(T, 32, policy=getattr(T, policy)())
    recipe = lower(preset.transforms, native_only=True)
    assert (recipe.height, recipe.width) == (32, 32) and not recipe.calls


def test_simclr_without_blur(T: ModuleType, feeder: Feeder, pictures: list[Image.Image]) -> None:
    jitter = T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8)
    steps = [T.RandomResizedCrop(36), T.RandomHorizontalFlip(), jitter, T.RandomGrayscale(0.2), *to_floats(T)]
    assert_equal_on(pictures, feeder, T.Compose(steps), 12)


def test_cifar(T: ModuleType, feeder: Feeder, pictures: list[Image.Image]) -> None:
    steps = [T.Resize((32, 32)), T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), *to_floats(T)]
    assert_equal_on(pictures, feeder, T.Compose([*steps, T.RandomErasing(0.5, (0.06, 0.06), (1, 1))]), 8)


def test_three_augment_of_deit(T: ModuleType, feeder: Feeder, pictures: list[Image.Image]) -> None:
    three = T.RandomChoice([T.RandomGrayscale(1.0), T.RandomSolarize(128, 1.0), T.RandomInvert(0.0)])
    steps = [T.Resize(40), T.RandomCrop(40, 4, padding_mode="reflect"), T.RandomHorizontalFlip(), three]
    assert_equal_on(pictures, feeder, T.Compose([*steps, T.ColorJitter(0.3, 0.3, 0.3), *to_floats(T)]), 12)
