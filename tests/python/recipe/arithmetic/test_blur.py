"""GaussianBlur: the native sums equal torch's to the bit; on processors where they do not, Python blurs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from against_torchvision import assert_equal_on
from headrace import DataLoader, EncodedImages, ImageArray
from headrace import transforms as T
from headrace._base.native import core
from headrace._lowering import LoweringError, lower
from headrace._recipe.arithmetic import blur_rule
from headrace._recipe.draws.weights_from_draws import gaussian_weights
from support import TENSOR, assert_same, pictures, recipe_of
from torchvision_feed import Feeder

pytestmark = pytest.mark.slow

ordered_alike = pytest.mark.skipif(
    not blur_rule.is_native_blur_exact(),
    reason="torch's convolution adds up in another order on this processor: Python blurs",
)
#: Kernels of (width, height).
KERNELS = ((3, 3), (5, 5), (7, 3), (1, 9), (23, 23))


@ordered_alike
@pytest.mark.parametrize("isa", core.isas())
@pytest.mark.parametrize(("width", "height"), KERNELS)
def test_every_sum_is_torchs(isa: str, width: int, height: int) -> None:
    random = np.random.default_rng(width)
    for _ in range(12):
        size = tuple(int(edge) for edge in random.integers((height // 2 + 1, width // 2 + 1), 120))
        pixels = random.integers(0, 256, (*size, 4), dtype=np.uint8)
        row, column = (gaussian_weights(random.uniform(0.1, 3, 1), edge, True)[0] for edge in (width, height))
        planes = torch.from_numpy(pixels[..., :3].copy()).permute(2, 0, 1)[None].float()
        planes = torch.nn.functional.pad(planes, [width // 2, width // 2, height // 2, height // 2], mode="reflect")
        kernel = torch.from_numpy(column)[:, None] * torch.from_numpy(row)
        expected = torch.nn.functional.conv2d(planes, kernel.expand(3, 1, height, width), groups=3)
        made = core.blur(pixels, row, column, isa=isa)[..., :3]
        assert np.array_equal(made, expected[0].permute(1, 2, 0).numpy()), size


@pytest.mark.parametrize("size", [1, 3, 9, 23])
def test_weights_are_torchvisions(torchvision: ModuleType, size: int) -> None:
    from torchvision.transforms import _functional_tensor as v1
    from torchvision.transforms.v2.functional import _misc as v2

    sigmas = np.random.default_rng(1).uniform(0.05, 4, 300)
    device = torch.device("cpu")
    for softmax, kernel in ((False, v1._get_gaussian_kernel1d), (True, v2._get_gaussian_kernel1d)):
        expected = torch.stack([kernel(size, float(sigma), torch.float32, device) for sigma in sigmas])
        assert np.array_equal(gaussian_weights(sigmas, size, softmax), expected.numpy())


@ordered_alike
@pytest.mark.parametrize("home", ["v1", "v2"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_lowered_and_equal_to_torchvision(
    torchvision: ModuleType, feeder: Feeder, images: list[Image.Image], home: str, kernel: tuple[Any, ...]
) -> None:
    modules = torchvision.transforms if home == "v1" else torchvision.transforms.v2
    blur = modules.GaussianBlur(kernel, (0.1, 3.0))
    large = [image for image in images if min(image.size) > 12]
    transform = modules.Compose([blur, modules.CenterCrop(40), modules.PILToTensor()])
    assert not lower(transform).calls
    assert_equal_on(large, feeder, transform, 3)


def simclr(size: int) -> T.Compose:
    """SimCLR's steps, with flips before and after the blur."""
    jitter = T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8)
    blur = T.RandomApply([T.GaussianBlur(size // 10 * 2 + 1)], p=0.5)
    steps = [T.RandomResizedCrop(size), T.RandomHorizontalFlip(), jitter, T.RandomGrayscale(0.2), blur]
    return T.Compose([*steps, T.RandomVerticalFlip(), T.RandomCrop(size, 4), *TENSOR])


@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_equal_the_oracle(device: str | None) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    loader = DataLoader(EncodedImages(pictures(48), None, simclr(64)), 12, True, seed=5, num_workers=2, device=device)
    for _ in range(3):
        assert assert_same(loader, list(loader.reference())) == 4


@pytest.mark.parametrize("isa", core.isas())
def test_instruction_sets_agree(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (50, 70, 4), dtype=np.uint8)
    row, column = (np.random.default_rng(4).random(size, dtype=np.float32) for size in (9, 5))
    assert np.array_equal(core.blur(pixels, row, column, isa=isa), core.blur(pixels, row, column, isa="scalar"))


def test_where_torch_adds_up_otherwise_python_blurs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blur_rule, "is_native_blur_exact", lambda: False)
    with pytest.raises(LoweringError, match="in another order on this processor"):
        lower(simclr(64), native_only=True)
    loader = DataLoader(EncodedImages(pictures(), None, simclr(64)), 12, seed=5, num_workers=2)
    assert recipe_of(loader).calls
    assert_same(loader, list(loader.reference()))


def test_gray_images_are_blurred_by_python() -> None:
    images = np.random.default_rng(0).integers(0, 256, (9, 28, 28), dtype=np.uint8)
    loader = DataLoader(ImageArray(images, None, T.Compose([T.GaussianBlur(3), T.ToTensor()])), 4)
    assert loader.native and recipe_of(loader).calls
    assert_same(loader, list(loader.reference()))


@ordered_alike
def test_an_image_with_fewer_pixels_than_are_mirrored_is_one_sentence() -> None:
    transform = T.Compose([T.Resize((9, 4)), T.GaussianBlur(9), T.ToTensor()])
    loader = DataLoader(EncodedImages(pictures(2), None, transform), 2)
    with pytest.raises(ValueError, match=r"plan: sample 0 .*GaussianBlur mirrors \(4, 4\) pixels .*image of \(9, 4\)"):
        next(iter(loader))
    with pytest.raises(ValueError):
        next(iter(loader.reference()))


@pytest.mark.parametrize("arguments", [(3,), ((5, 9), 0.7), ([7], (0.4, 2.5))])
def test_the_transform_is_v2s(torchvision: ModuleType, images: list[Image.Image], arguments: tuple[Any, ...]) -> None:
    theirs, ours = torchvision.transforms.v2.GaussianBlur(*arguments), T.GaussianBlur(*arguments)
    assert repr(ours) == repr(theirs)
    for image in [image for image in images if min(image.size) > 5]:
        torch.manual_seed(4)
        expected = theirs(image)
        torch.manual_seed(4)
        made = ours(image)
        assert isinstance(made, Image.Image) and np.array_equal(np.array(made), np.array(expected))


@pytest.mark.parametrize("arguments", [(4,), (0,), ((3, 2),), ((1, 3, 5),), (3, 0.0), (3, (2.0, 1.0)), (3, (1, 2, 3))])
def test_refusals_are_v2s(torchvision: ModuleType, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError) as theirs:
        torchvision.transforms.v2.GaussianBlur(*arguments)
    with pytest.raises(ValueError) as ours:
        T.GaussianBlur(*arguments)
    assert str(ours.value) == str(theirs.value)
