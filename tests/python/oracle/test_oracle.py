"""The oracle equals torchvision itself, v1 and v2, run on the same draws: every step, filter, padding and dtype."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from against_torchvision import MEAN, STD, assert_equal_on
from headrace._lowering import LoweringError, lower
from headrace._oracle.reference import ReferenceDataset, reference_sample
from headrace._recipe.arithmetic.functional_pil import open_rgb
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps.steps import FILTERS
from torchvision_feed import Feeder

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("filter", FILTERS)
def test_every_filter(T: ModuleType, feeder: Feeder, images: list[Image.Image], filter: str) -> None:
    mode = T.InterpolationMode(filter)
    assert_equal_on(images, feeder, T.Compose([T.RandomResizedCrop(32, interpolation=mode), T.PILToTensor()]), 8)
    assert_equal_on(images, feeder, T.Compose([T.Resize((29, 41), mode), T.PILToTensor()]), 1)
    assert_equal_on(images, feeder, T.Compose([T.Resize(40, mode, max_size=60), T.CenterCrop(36), T.PILToTensor()]), 1)


@pytest.mark.parametrize("size", [1, 17, (31, 8), [9]])
def test_random_resized_crop(T: ModuleType, feeder: Feeder, images: list[Image.Image], size: Any) -> None:
    assert_equal_on(images, feeder, T.Compose([T.RandomResizedCrop(size), T.PILToTensor()]), 8)
    narrow = T.RandomResizedCrop(size, scale=(0.5, 1.0), ratio=(0.1, 0.4))
    assert_equal_on(images, feeder, T.Compose([narrow, T.PILToTensor()]), 8)


@pytest.mark.parametrize("size", [1, 20, (70, 30), (31, 64), 255])
def test_center_crop(T: ModuleType, feeder: Feeder, images: list[Image.Image], size: int | tuple[Any, ...]) -> None:
    assert_equal_on(images, feeder, T.Compose([T.CenterCrop(size), T.PILToTensor()]), 1)


@pytest.mark.parametrize("max_size", [None, 33, 48, 200])
def test_resize_by_edge(T: ModuleType, feeder: Feeder, images: list[Image.Image], max_size: int | None) -> None:
    resizable = [image for image in images if max(image.size) / min(image.size) < 30]
    assert_equal_on(
        resizable, feeder, T.Compose([T.Resize(32, max_size=max_size), T.CenterCrop(32), T.PILToTensor()]), 1
    )


def test_resize_by_longer_edge(torchvision: ModuleType, feeder: Feeder, images: list[Image.Image]) -> None:
    T = torchvision.transforms.v2
    resizable = [image for image in images if max(image.size) / min(image.size) < 30]
    assert_equal_on(resizable, feeder, T.Compose([T.Resize(None, max_size=40), T.CenterCrop(32), T.PILToTensor()]), 1)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize(
    ("padding", "needed"), [(None, False), (None, True), (3, False), ([5, 2], False), ([1, 2, 3, 70], False), (4, True)]
)
def test_random_crop(
    T: ModuleType,
    torchvision: ModuleType,
    feeder: Feeder,
    images: list[Image.Image],
    mode: str,
    padding: int | list[Any] | None,
    needed: bool,
) -> None:
    crop = T.Compose([T.RandomCrop((48, 40), padding, needed, (7, 300, -2), mode), T.PILToTensor()])
    if T is torchvision.transforms and padding and needed and mode in ("reflect", "symmetric"):
        with pytest.raises(LoweringError, match="v1 pads a small image twice"):
            lower(crop, native_only=True)
    else:
        assert_equal_on(images, feeder, crop, 4)


@pytest.mark.parametrize("fill", [0, 5, 9.7, (1, 2, 3), [4.5], None])
def test_random_crop_fill(T: ModuleType, feeder: Feeder, images: list[Image.Image], fill: Any) -> None:
    crop = T.RandomCrop(40, 6, True, fill=fill)
    assert_equal_on(images, feeder, T.Compose([crop, T.PILToTensor()]), 2)


def test_random_crop_fill_by_type(torchvision: ModuleType, feeder: Feeder, images: list[Image.Image]) -> None:
    T = torchvision.transforms.v2
    for fill in ({Image.Image: (9, 8, 7), "others": 1}, {"others": 3}, {torch.Tensor: 3}):
        assert_equal_on(images, feeder, T.Compose([T.RandomCrop(40, 6, True, fill=fill), T.PILToTensor()]), 2)


def test_flips_before_and_after_the_tensor(T: ModuleType, feeder: Feeder, images: list[Image.Image]) -> None:
    flips = [T.RandomHorizontalFlip(), T.RandomVerticalFlip(0.3)]
    ends = [T.PILToTensor(), T.ConvertImageDtype(torch.float32), T.Normalize(MEAN, STD)]
    assert_equal_on(images, feeder, T.Compose([*flips, T.Resize((20, 30)), *ends]), 6)
    assert_equal_on(images, feeder, T.Compose([T.Resize((20, 30)), *ends, *flips]), 6)
    assert_equal_on(images, feeder, T.Compose([T.RandomHorizontalFlip(0), T.CenterCrop(9), *ends]), 2)
    assert_equal_on(images, feeder, T.Compose([T.RandomHorizontalFlip(1), T.CenterCrop(9), *ends]), 2)


@pytest.mark.parametrize("channels", [1, 3])
def test_grayscale(T: ModuleType, feeder: Feeder, images: list[Image.Image], channels: int) -> None:
    gray = T.Grayscale(channels)
    assert_equal_on(images, feeder, T.Compose([gray, T.RandomResizedCrop(20), T.PILToTensor()]))
    assert_equal_on(images, feeder, T.Compose([T.Resize((20, 21)), gray, T.PILToTensor()]), 1)
    crop = T.RandomCrop(60, 4, True, fill=5)
    assert_equal_on(images, feeder, T.Compose([gray, crop, T.Grayscale(3), T.PILToTensor()]))
    assert_equal_on(images, feeder, T.Compose([T.RandomCrop(60, 4, True, fill=(9, 200, 4)), gray, T.PILToTensor()]))


def test_rgb(torchvision: ModuleType, feeder: Feeder, images: list[Image.Image]) -> None:
    T = torchvision.transforms.v2
    assert_equal_on(images, feeder, T.Compose([T.RGB(), T.CenterCrop(20), T.PILToTensor()]), 1)
    assert_equal_on(images, feeder, T.Compose([T.Grayscale(1), T.RGB(), T.CenterCrop(20), T.PILToTensor()]), 1)


def test_many_steps(T: ModuleType, feeder: Feeder, images: list[Image.Image]) -> None:
    transform = T.Compose(
        [
            T.RandomCrop(50, pad_if_needed=True, padding_mode="symmetric"),
            T.RandomVerticalFlip(),
            T.Resize(45),
            T.Compose([T.RandomHorizontalFlip(), torch.nn.Sequential(T.CenterCrop((60, 40)))]),
            T.RandomResizedCrop((24, 32), interpolation=T.InterpolationMode.LANCZOS),
            T.RandomHorizontalFlip(),
            T.PILToTensor(),
        ]
    )
    assert_equal_on(images, feeder, transform, 8)


FLOATS = (torch.float32, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", FLOATS)
def test_v2_tensor_steps(
    torchvision: ModuleType, feeder: Feeder, images: list[Image.Image], dtype: torch.dtype
) -> None:
    T = torchvision.transforms.v2
    for steps in (
        [T.ToImage(), T.ToDtype(dtype, scale=True)],
        [T.ToImage(), T.ToDtype(dtype, scale=True), T.Normalize(MEAN, STD), T.ToPureTensor()],
        [T.ToImage(), T.ToDtype(torch.float64, scale=True), T.Normalize(MEAN, STD), T.ToDtype(dtype)],
        [T.ToImage(), T.ToDtype(dtype), T.Normalize([128] * 3, [255.0], inplace=True)],
        [T.PILToTensor(), T.ConvertImageDtype(dtype), T.Normalize(MEAN, STD)],
        [T.ToImage(), T.ToDtype({torchvision.tv_tensors.Image: dtype, "others": None}, scale=True)],
    ):
        assert_equal_on(images, feeder, T.Compose([T.RandomResizedCrop(24), *steps]), 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_v1_tensor_steps(
    torchvision: ModuleType, feeder: Feeder, images: list[Image.Image], dtype: torch.dtype
) -> None:
    T = torchvision.transforms
    for steps in (
        [T.ToTensor(), T.Normalize(MEAN, STD), T.ConvertImageDtype(dtype)],
        [T.ToTensor(), T.ConvertImageDtype(dtype), T.Normalize(MEAN, STD, inplace=True)],
        [T.PILToTensor(), T.ConvertImageDtype(dtype), T.Normalize(torch.tensor(MEAN), torch.tensor(STD))],
        [T.PILToTensor(), T.ConvertImageDtype(dtype), T.Normalize(0.5, 0.25)],
    ):
        assert_equal_on(images, feeder, T.Compose([T.RandomResizedCrop(24), *steps]), 1)


def test_bytes_again(torchvision: ModuleType, feeder: Feeder, images: list[Image.Image]) -> None:
    T = torchvision.transforms
    assert_equal_on(images, feeder, T.Compose([T.CenterCrop(24), T.ToTensor(), T.ConvertImageDtype(torch.uint8)]), 1)
    T = torchvision.transforms.v2
    assert_equal_on(
        images,
        feeder,
        T.Compose(
            [T.CenterCrop(24), T.ToImage(), T.ToDtype(torch.int16, scale=True), T.ToDtype(torch.uint8, scale=True)]
        ),
        1,
    )


def test_v1_and_v2_differ_in_the_last_bit(torchvision: ModuleType) -> None:
    """This is why the user's own objects make the table."""
    v1, v2 = torchvision.transforms, torchvision.transforms.v2
    by_division = lower(v1.Compose([v1.CenterCrop(8), v1.ToTensor()])).lut
    by_product = lower(v2.Compose([v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])).lut
    assert not torch.equal(by_division, by_product)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.uint8])
def test_table_holds_what_the_tensor_steps_make(
    torchvision: ModuleType, images: list[Image.Image], dtype: torch.dtype
) -> None:
    T = torchvision.transforms.v2
    steps = [T.Resize((33, 21)), T.ToImage()]
    if dtype != torch.uint8:
        steps += [T.ToDtype(torch.float32, scale=True), T.Normalize(MEAN, STD)]
    recipe = lower(T.Compose(steps), dtype=dtype)
    for image in images:
        made = reference_sample(image, recipe, [])
        pixels = np.asarray(image.resize((21, 33), Image.Resampling.BILINEAR))
        looked_up = torch.stack([recipe.lut[c][torch.from_numpy(pixels[..., c].astype(np.int64))] for c in range(3)])
        assert torch.equal(made, looked_up)


@dataclass
class Files:
    """The parts of a source that the oracle uses."""

    paths: list[Path]
    has_targets: bool = True

    def __len__(self) -> int:
        return len(self.paths)

    def image(self, index: int) -> Image.Image:
        return open_rgb(self.paths[index].read_bytes())

    def target(self, index: int) -> int:
        return index % 7


def train(T: ModuleType) -> Any:
    is_v2 = T.__name__.endswith("v2")
    tensor = [T.ToImage(), T.ToDtype(torch.float32, scale=True)] if is_v2 else [T.ToTensor()]
    return T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *tensor, T.Normalize(MEAN, STD)])


def check_dataset(paths: list[Path], transform: Any, feeder: Feeder, epochs: int) -> None:
    recipe = lower(transform)
    dataset = ReferenceDataset(Files(paths), recipe, seed=3)
    for epoch in range(epochs):
        dataset.epoch = epoch
        for index in range(len(paths)):
            sample: Any = dataset[index, epoch % 2]
            image, target = sample
            row = Draws(recipe.columns, 3).batch(epoch, [index], [epoch % 2])[0].tolist()
            with Image.open(paths[index]) as opened:
                assert torch.equal(image, feeder(transform, opened.convert("RGB"), recipe, row))
            assert target == index % 7


def test_dataset_on_photographs(T: ModuleType, feeder: Feeder, photographs: list[Path]) -> None:
    check_dataset(photographs, train(T), feeder, epochs=1)


def test_dataset_on_imagenet(T: ModuleType, feeder: Feeder, imagenet_dev: Path) -> None:
    check_dataset(sorted(imagenet_dev.rglob("*.JPEG")), train(T), feeder, epochs=1)


def test_dataset_for_evaluation(T: ModuleType, feeder: Feeder, imagenet_dev: Path) -> None:
    transform = T.Compose([T.Resize(256), T.CenterCrop(224), T.PILToTensor(), T.ConvertImageDtype(torch.float32)])
    check_dataset(sorted(imagenet_dev.rglob("*.JPEG"))[::4], transform, feeder, epochs=1)


def test_preset_of_torchvisions_weights(torchvision: ModuleType, images: list[Image.Image]) -> None:
    weights = torchvision.models.ResNet50_Weights.IMAGENET1K_V2.transforms()
    recipe = lower(weights)
    assert (recipe.height, recipe.width, len(recipe.names)) == (224, 224, 5)
    for image in images:
        if max(image.size) / min(image.size) < 30:
            assert torch.equal(reference_sample(image, recipe, []), weights(image))


def test_dataset_in_a_torch_loader(photographs: list[Path]) -> None:
    from headrace.transforms import Compose, RandomResizedCrop, ToTensor

    recipe = lower(Compose([RandomResizedCrop(16), ToTensor()]))
    dataset = ReferenceDataset(Files(photographs), recipe, seed=0)
    keys = [[(0, 0), (1, 0)], [(2, 0), (0, 1)]]
    loader = torch.utils.data.DataLoader(dataset, batch_sampler=keys)
    (first, labels), (second, _) = loader
    assert first.shape == second.shape == (2, 3, 16, 16) and labels.tolist() == [0, 1]
    assert not torch.equal(first[0], second[1])  # the second occurrence of sample 0 has draws of its own
    alone = ReferenceDataset(Files(photographs, has_targets=False), recipe, seed=0)
    image = alone[0, 0]
    assert isinstance(image, torch.Tensor) and torch.equal(image, first[0])
