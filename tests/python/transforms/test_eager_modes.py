"""headrace.transforms on images of each Pillow mode: pixels, modes, draws and refusals equal torchvision v2's."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from eager import MODES, both, image_of, made
from PIL import Image

import headrace.transforms as H

pytestmark = pytest.mark.slow

COLOURS = [
    "Grayscale(1)",
    "Grayscale(2)",
    "Grayscale(3)",
    "RandomGrayscale(1.0)",
    "RandomGrayscale(0.5)",
    "ColorJitter(0.4)",
    "ColorJitter(contrast=0.4)",
    "ColorJitter(saturation=0.4)",
    "ColorJitter(hue=0.4)",
    "ColorJitter(0.4, 0.4, 0.4, 0.1)",
    "RandomInvert(1.0)",
    "RandomPosterize(3, 1.0)",
    "RandomSolarize(100, 1.0)",
    "RandomAutocontrast(1.0)",
    "RandomEqualize(1.0)",
    "RandomAdjustSharpness(1.7, 1.0)",
    "RandomChannelPermutation()",
    "RandomPhotometricDistort(p=0.7)",
    "RandAugment(3)",
    "TrivialAugmentWide()",
    "AutoAugment()",
    "GaussianBlur(3)",
    "GaussianBlur((5, 3), (0.5, 2.0))",
]
GEOMETRY = [
    "Resize(9)",
    "Resize((9, 40), 'nearest')",
    "Resize((9, 40), 'lanczos')",
    "CenterCrop(40)",
    "CenterCrop((5, 40))",
    "CenterCrop(5)",
    "RandomHorizontalFlip(0.5)",
    "RandomVerticalFlip(0.5)",
    "RandomResizedCrop(9)",
    "RandomCrop(30, None, True, 7)",
    "RandomCrop(3, 2, fill=(1, 2, 3, 4), padding_mode='edge')",
    "RandomCrop(10, -2)",
    "RandomCrop(10, -2, True)",
    "RandomCrop((5, 6), (-3, 2, 4, -5), True, 3, 'reflect')",
    "RandomCrop((17, 23))",
    "Pad(0)",
    "Pad(0, 0, 'edge')",
    "Pad(2, 7)",
    "Pad((1, 2), 300)",
    "Pad(1, [5])",
    "Pad(1, None)",
    "Pad(1, (5, 6))",
    "Pad(1, (1, 2, 3))",
    "Pad(1, (1, 2, 3, 4))",
    "Pad(2, {PIL.Image: 5, 'others': 7})",
    "Pad(2, {PIL.Image: (1, 2, 3)})",
    "Pad(2, {'others': 7.9})",
    "Pad(2, {torch.Tensor: 3})",
    "Pad(2, {})",
    "Pad(-2)",
    "Pad((-3, 2, 4, -5), 9)",
    "Pad((-3, 2, 4, -5), 9, 'edge')",
    "Pad((-3, 2, 4, -5), 9, 'reflect')",
    "Pad((-3, 2, 4, -5), 9, 'symmetric')",
    "Pad(-9)",
    "Pad(-12, 0, 'edge')",
]
WARPS = [
    "RandomRotation(30)",
    "RandomRotation((90, 90), expand=True)",
    "RandomRotation((180, 180), 'bicubic')",
    "RandomRotation((10, 50), 'bilinear', True, fill=(1, 2, 3))",
    "RandomRotation(200, 'nearest', center=[0, 3.5], fill=300)",
    "RandomRotation(30, 'lanczos')",
    "RandomRotation(30, fill={PIL.Image: 5, 'others': 7})",
    "RandomRotation(30, fill=(1, 2, 3, 4))",
    "RandomAffine(0)",
    "RandomAffine(30, (0.2, 0.9), (0.5, 2.0), 20, 'bilinear', 9)",
    "RandomAffine((-5, 80), None, [0.1, 1], [1, 2, 3, 4], 'bicubic', [7], (3, 1))",
    "RandomAffine(10, shear=(5, 9), fill=None)",
    "RandomPerspective()",
    "RandomPerspective(0.3, 1.0, 'nearest', 200)",
    "RandomPerspective(0.6, 1.0, 'bicubic', (1, 2, 3))",
    "RandomPerspective(0.2, 1.0, 'box')",
]
TENSORS = [
    "ToTensor()",
    "PILToTensor()",
    "ToImage()",
    "ToDtype(torch.float32, scale=True)",
    "Normalize([0.5], [0.5])",
    "ToPureTensor()",
    "RandomErasing(1.0)",
    "RandomErasing(1.0, value=(1, 2, 3))",
    "RandomErasing(0.5, value='random')",
    "Compose([ToImage(), ToDtype(torch.float32, scale=True), RandomHorizontalFlip(), Normalize([0.5], [0.5])])",
    "Compose([ToImage(), ToDtype(torch.uint16, scale=True)])",
    "Compose([ToImage(), ToDtype(torch.uint8, scale=True)])",
    "Compose([PILToTensor(), ToDtype(torch.int32, scale=True)])",
    "Compose([ToTensor(), RandomErasing(1.0), Normalize([0.5], [0.5])])",
]


@pytest.mark.parametrize("call", [*COLOURS, *GEOMETRY, *WARPS, *TENSORS])
def test_every_mode_is_torchvisions(torchvision: ModuleType, call: str) -> None:
    ours, theirs = both(torchvision, call)
    for mode in MODES:
        for size in ((23, 17), (4, 9)):
            image = image_of(mode, *size)
            for seed in range(2):
                expected = made(theirs, image.copy(), seed=seed)
                assert made(ours, image.copy(), seed=seed) == expected, (mode, size, seed)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_alpha_is_an_image_channel_as_any_other(mode: str) -> None:
    image = Image.fromarray(np.full((8, 8, 4), 100, np.uint8)).convert(mode)
    channels = len(image.getbands())
    assert H.GaussianBlur(3)(image).tobytes() == image.tobytes()
    assert H.Pad(1, 7)(image).getpixel((0, 0)) == (7,) * channels
    assert H.RandomCrop(10, None, True, 7)(image).mode == mode
    with pytest.raises(ValueError, match=f"num_output_channels must be 1 or 3, got {channels}"):
        H.RandomGrayscale(1.0)(image)


def test_a_fill_goes_by_the_very_class_of_an_image(torchvision: ModuleType, tmp_path: Path) -> None:
    image_of("RGB").save(tmp_path / "image.png")
    ours, theirs = both(torchvision, "Pad(2, {PIL.Image: 5, 'others': 7})")
    with Image.open(tmp_path / "image.png") as opened:  # of a subclass of Image
        assert made(ours, opened) == made(theirs, opened)
        assert ours(opened).getpixel((0, 0)) == (7, 7, 7) and ours(opened.convert("RGB")).getpixel((0, 0)) == (5, 5, 5)


def test_sixteen_bits() -> None:
    image = Image.fromarray(np.array([[0, 40000]], np.uint16))
    assert H.ToTensor()(image).tolist() == [[[0, 40000 - 65536]]] and H.ToTensor()(image).dtype == torch.int16
    assert H.PILToTensor()(image).dtype == H.ToImage()(image).dtype == torch.uint16


@pytest.mark.parametrize("mode", ["P", "1", "I;16"])
@pytest.mark.parametrize("transform", [H.GaussianBlur(3), H.RandomErasing(1.0)])
def test_a_mode_that_no_tensor_goes_back_to_is_one_sentence(mode: str, transform: Any) -> None:
    with pytest.raises(ValueError, match=rf"^Incorrect mode \({mode}\) .*; convert the image to RGB or L first"):
        transform(image_of(mode))
