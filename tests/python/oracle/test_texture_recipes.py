"""Recipes that end in TextureChannels: every loader delivers the oracle's channels to the bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages, ImageArray, ImageFiles
from headrace import transforms as T
from headrace._base.native import core
from headrace._engine import device_engine
from headrace._engine.image_engine import ImageEngine
from headrace.sampler import AspectRatioBatchSampler
from support import assert_same, blobs, pictures, silent_pillow, truncated

pytestmark = pytest.mark.pixels
RNG = np.random.default_rng(3)
JITTER = T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8)


def recipe(size: int, layout: str = "CHW") -> T.Compose:
    return T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip(), JITTER, T.TextureChannels(layout)])


class Doubled(T.TextureChannels):
    """A subclass, which may do anything."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> torch.Tensor:
        return super().transform(inpt, params) * 2


def scaled(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 0.5


def invert(image: Any) -> Any:
    return image.point(lambda value: 255 - value)


def all_native(loader: DataLoader) -> bool:
    """Whether every transform is native."""
    return loader.native and not any("called in Python" in line.how for line in loader.explain().lines)


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("size", [97, 32, 7, 1])
def test_real_and_odd_files(files: list[Path], size: int, layout: str) -> None:
    some = [path for path in files if path.stat().st_size < 200_000 and "jpegdec" not in path.name]
    some = some[:: -(-len(some) // 12)]
    dataset = ImageFiles(some, range(len(some)), recipe(size, layout))
    loader = DataLoader(dataset, 8, shuffle=True, num_workers=2, seed=11)
    assert all_native(loader)
    with silent_pillow():
        assert_same(loader, list(loader.reference()))


def test_the_usual_size(photographs: list[Path]) -> None:
    loader = DataLoader(ImageFiles(photographs[:6], range(6), recipe(224)), 3, num_workers=1, seed=1)
    assert_same(loader, list(loader.reference()))


@pytest.mark.parametrize("isa", core.isas())
def test_every_instruction_set(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_engine, "ImageEngine", lambda *given, **options: ImageEngine(*given, **options, isa=isa))
    loader = DataLoader(blobs(24, recipe(48)), 5, True, seed=1, num_workers=2)
    assert_same(loader, list(loader.reference()))


@pytest.mark.parametrize("options", [{}, {"num_workers": 3}, {"device": "emulated", "num_workers": 2}], ids=str)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_every_layout(layout: str, memory_format: torch.memory_format, options: dict[str, Any]) -> None:
    if "device" in options:
        pytest.importorskip("headrace._gpu")
    transform = T.Compose([T.RandomResizedCrop((48, 40)), T.RandomHorizontalFlip(), T.TextureChannels(layout)])
    loader = DataLoader(blobs(24, transform), 5, True, seed=1, memory_format=memory_format, **options)
    assert all_native(loader)
    expected = list(loader.reference())
    batches = list(loader)
    assert_same(batches, expected)
    assert batches[0][0].shape == ((5, 13, 48, 40) if layout == "CHW" else (5, 48, 40, 13))
    assert batches[0][0].dtype == torch.float32 and batches[0][0].is_contiguous(memory_format=memory_format)
    assert "0 differ" in str(loader.verify())
    assert "device's kernel" not in str(loader.explain())


def test_torchs_own_loader() -> None:
    """Without the oracle: nothing is random, and the transform is called as torch calls it."""
    images = RNG.integers(0, 256, (9, 64, 48, 3), dtype=np.uint8)
    for data in (images, images[..., 0]):
        for layout in ("CHW", "HWC"):
            dataset = ImageArray(data, range(9), T.Compose([T.Resize((32, 40)), T.TextureChannels(layout)]))
            loader = DataLoader(dataset, 4, num_workers=2)
            assert all_native(loader)
            assert_same(loader, TorchDataLoader(dataset, 4))


@pytest.mark.parametrize(
    "steps",
    [
        [T.Grayscale(1), T.TextureChannels()],
        [T.ToImage(), T.TextureChannels()],
        [T.PILToTensor(), T.RandomHorizontalFlip(), T.TextureChannels("HWC")],
        [T.RandomApply([T.GaussianBlur(5)], 0.5), T.RandomGrayscale(0.5), T.TextureChannels()],
        [T.Pad(3, 7, "constant"), T.RandomVerticalFlip(), T.TextureChannels(bands=((0, 0.2), (0.1, 0.9)))],
    ],
    ids=["gray", "image tensor", "tensor", "effects", "padded"],
)
def test_steps_before_it(steps: list[Any]) -> None:
    transform = T.Compose([T.RandomResizedCrop(24), *steps])
    loader = DataLoader(blobs(24, transform), 5, True, seed=1, num_workers=2)
    assert all_native(loader)
    assert_same(loader, list(loader.reference()))


def test_behind_a_step_in_python() -> None:
    loader = DataLoader(blobs(24, T.Compose([T.CenterCrop(33), invert, T.TextureChannels()])), 5, num_workers=2)
    assert [line.runs for line in loader.explain().lines if line.part.startswith("TextureChannels")] == ["native"]
    assert_same(loader, list(loader.reference()))


def test_a_size_for_each_aspect_ratio() -> None:
    sizes = {(40, 40): T.RandomResizedCrop(40), (32, 48): T.RandomResizedCrop((32, 48))}
    for layout in ("CHW", "HWC"):
        data = blobs(24, T.Compose([T.ByAspectRatio(sizes), T.TextureChannels(layout)]))
        loader = DataLoader(data, batch_sampler=AspectRatioBatchSampler(data, 4, list(sizes)), seed=2, num_workers=2)
        assert all_native(loader)
        shapes = {tuple(images.shape[1:]) for images, _ in loader}
        assert len(shapes) == 2 and all(13 in shape for shape in shapes)
        assert_same(loader, list(loader.reference()))


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_broken_files_are_replaced_or_left_out(policy: Literal["skip", "replace"], workers: int, layout: str) -> None:
    data = list(pictures(12))
    data[2], data[7] = truncated(data[2]), b"no image"
    loader = DataLoader(
        EncodedImages(data, range(12), recipe(24, layout)), 6, seed=4, on_error=policy, num_workers=workers
    )
    expected = list(loader.reference())
    with pytest.warns(UserWarning, match="2 samples could not be made"):
        batches = list(loader)
    assert_same(batches, expected)
    assert sum(len(images) for images, _ in batches) == (10 if policy == "skip" else 12)


def test_single_samples_and_resumed_epochs() -> None:
    loader = DataLoader(blobs(8, recipe(24, "HWC")), None, seed=4, num_workers=2)
    assert_same(loader, list(loader.reference()))
    assert next(iter(loader))[0].shape == (24, 24, 13)
    whole = list(DataLoader(blobs(24, recipe(24)), 4, True, seed=4))
    first = DataLoader(blobs(24, recipe(24)), 4, True, seed=4, num_workers=2)
    iterator = iter(first)
    assert_same([next(iterator), next(iterator)], whole[:2])
    second = DataLoader(blobs(24, recipe(24)), 4, True, seed=4)
    second.load_state_dict(first.state_dict())
    assert_same(second, whole[2:])


@pytest.mark.parametrize(
    ("steps", "options", "shape", "words"),
    [
        ([T.TextureChannels(), scaled], {}, (13, 16, 16), r"is native as the last step only, but .*scaled.* comes aft"),
        ([T.TextureChannels()], {"dtype": torch.float16}, (13, 16, 16), "the last step only, but dtype=torch.float16"),
        ([T.TextureChannels(), T.Normalize([0.5] * 13, [0.5] * 13)], {}, (13, 16, 16), "but Normalize.* comes after"),
        ([Doubled("HWC")], {}, (16, 16, 13), "is a subclass that may behave differently from TextureChannels"),
    ],
    ids=["a function behind it", "dtype", "Normalize behind it", "a subclass"],
)
def test_what_is_not_native_runs_in_python(
    steps: list[Any], options: dict[str, Any], shape: tuple[Any, ...], words: str
) -> None:
    dataset = blobs(12, T.Compose([T.CenterCrop(16), *steps]))
    loader = DataLoader(dataset, 4, num_workers=2, **options)
    assert loader.native and not all_native(loader)
    assert re.search(words, str([line.how for line in loader.explain().lines]))
    expected = list(loader.reference())
    batches = list(loader)
    assert_same(batches, expected)
    assert batches[0][0].shape == (4, *shape) and batches[0][0].dtype == options.get("dtype", torch.float32)
    plain = [dataset[i][0].to(batches[0][0].dtype) for i in range(4)]
    assert torch.equal(batches[0][0], torch.stack(plain))
