"""Batches in host memory equal the oracle's to the bit: cases and sizes that tests/contract does not cover."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from headrace import DataLoader, ImageFiles
from headrace import transforms as T
from headrace._base.native import core
from headrace._engine import device_engine
from headrace._engine.image_engine import ImageEngine
from headrace._recipe.steps.recipe import DTYPES
from headrace._recipe.steps.steps import FILTERS
from support import MEAN, STD, TENSOR, assert_same, blobs, evaluation, silent_pillow, train

pytestmark = [pytest.mark.pixels, pytest.mark.slow]
EPOCHS = 3


def dataset(files: list[Path], transform: Any) -> ImageFiles:
    return ImageFiles(files, range(len(files)), transform)


def test_every_file_in_three_epochs_of_training(files: list[Path]) -> None:
    ours = DataLoader(dataset(files, train()), batch_size=32, shuffle=True, num_workers=2, seed=11)
    for _ in range(EPOCHS):
        with silent_pillow():
            expected = list(ours.reference())
            assert assert_same(ours, expected) == -(-len(files) // 32)


def test_every_file_in_evaluation(files: list[Path]) -> None:
    ours = DataLoader(dataset(files, evaluation()), batch_size=32, num_workers=2)
    with silent_pillow():
        assert assert_same(ours, list(ours.reference())) == -(-len(files) // 32)


@pytest.fixture(scope="module")
def mixture(files: list[Path]) -> list[Path]:
    """A selection small enough for many recipes, without images that Pillow takes seconds to enlarge."""
    small = [path for path in files if path.stat().st_size < 200_000 and "jpegdec" not in path.name]
    return small[:: -(-len(small) // 40)]


@pytest.mark.parametrize("filter", FILTERS)
def test_every_filter(mixture: list[Path], filter: str) -> None:
    mode = T.InterpolationMode(filter)
    recipes = [
        train(96, filter),
        T.Compose([T.Resize(110, mode, max_size=400), T.CenterCrop(96), *TENSOR]),
        T.Compose([T.Resize((50, 70), mode), T.RandomCrop(48), *TENSOR]),
    ]
    with silent_pillow():
        for recipe in recipes:
            ours = DataLoader(dataset(mixture, recipe), batch_size=16, num_workers=2, seed=3)
            assert_same(ours, list(ours.reference()))


PADDINGS = ("constant", "symmetric", "edge", "reflect")
JITTER = T.ColorJitter(0.8, 0.8, 0.8, 0.2)
SOME = [T.RandomInvert(), T.RandomPosterize(3), T.RandomSolarize(128), T.RandomAutocontrast(), T.RandomEqualize()]


@pytest.mark.parametrize(
    "steps",
    [
        [T.RandomResizedCrop(60), T.RandomHorizontalFlip(), JITTER],
        [JITTER, T.RandomResizedCrop(60)],
        [T.Resize((64, 50)), T.RandomChoice([T.ColorJitter(brightness=(0, 4)), T.ColorJitter(hue=0.5)])],
        [T.Resize((64, 50)), T.RandomChoice([T.ColorJitter(contrast=(0, 9)), T.ColorJitter(saturation=(0, 9))])],
        *([T.RandomResizedCrop(60), T.RandomApply([one], 0.8)] for one in SOME),
        [T.RandomOrder(SOME), T.RandomResizedCrop(60), T.RandomGrayscale(0.4), JITTER],
        [T.Resize(70), *(T.Pad((3, 9, 0, 30), (1, 200, 9), mode) for mode in PADDINGS), T.CenterCrop(99)],
        [T.RandomApply([JITTER], 0.8), T.RandomOrder([T.Resize((90, 70)), JITTER]), T.CenterCrop(80)],
    ],
    ids=lambda steps: " ".join(type(step).__name__ for step in steps),
)
def test_colours_choices_and_orders(mixture: list[Path], steps: list[Any]) -> None:
    with silent_pillow():
        ours = DataLoader(dataset(mixture, T.Compose([*steps, *TENSOR])), batch_size=16, num_workers=2, seed=5)
        assert_same(ours, list(ours.reference()))


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_erasing(dtype: torch.dtype, memory_format: torch.memory_format) -> None:
    end: list[Any] = [T.ToImage()] if dtype == torch.uint8 else list(TENSOR)
    value = (200.9, 0, 7) if dtype == torch.uint8 else (0.5, -3, 1e5)
    end[1:1] = [T.RandomErasing(0.7, value=value), T.RandomVerticalFlip()]
    end += [T.RandomErasing(0.7, (0.1, 0.9)), T.RandomHorizontalFlip()]
    data = blobs(transform=T.Compose([T.RandomResizedCrop(40), T.RandomHorizontalFlip(), JITTER, *end]))
    ours = DataLoader(data, 5, num_workers=2, seed=2, dtype=dtype, memory_format=memory_format)
    assert_same(ours, ours.reference())


def test_effects_on_one_channel() -> None:
    end = [T.ToTensor(), T.Normalize([0.4], [0.2]), T.RandomErasing(0.6, value=0.3)]
    gray = T.Compose([T.RandomResizedCrop(32), T.Grayscale(), JITTER, T.RandomOrder(SOME), *end])
    ours = DataLoader(blobs(transform=gray), batch_size=7, seed=1, num_workers=1)
    assert_same(ours, ours.reference())


def test_one_channel() -> None:
    gray = T.Compose([T.RandomResizedCrop(32), T.Grayscale(), T.ToTensor(), T.Normalize([0.4], [0.2])])
    for memory_format in (torch.contiguous_format, torch.channels_last):
        ours = DataLoader(blobs(transform=gray), batch_size=7, seed=1, num_workers=1, memory_format=memory_format)
        assert_same(ours, ours.reference())
        assert next(iter(ours))[0].shape == (7, 1, 32, 32)


def ours_v1(dtype: torch.dtype, _: Any) -> Any:
    to_dtype = [] if dtype == torch.float32 else [T.ToDtype(dtype)]
    return T.Compose([T.RandomResizedCrop(40), T.RandomHorizontalFlip(), *TENSOR, *to_dtype])


def ours_v2(dtype: torch.dtype, _: Any) -> Any:
    tensor = [T.ToImage(), T.ToDtype(torch.float32, scale=True), T.Normalize(MEAN, STD), T.ToDtype(dtype)]
    return T.Compose([T.RandomResizedCrop(40), T.RandomHorizontalFlip(), *tensor])


def torchvision_v1(dtype: torch.dtype, tv: Any) -> Any:
    t = tv.transforms
    tensor = [t.ToTensor(), t.Normalize(MEAN, STD)]
    return t.Compose([t.RandomResizedCrop(40), t.RandomHorizontalFlip(), *tensor, t.v2.ToDtype(dtype)])


def torchvision_v2(dtype: torch.dtype, tv: Any) -> Any:
    t = tv.transforms.v2
    tensor = [t.ToImage(), t.ToDtype(dtype, scale=True), t.Normalize(MEAN, STD)]
    return t.Compose([t.RandomResizedCrop(40), t.RandomHorizontalFlip(), *tensor])


KINDS: list[Callable[[torch.dtype, Any], Any]] = [ours_v1, ours_v2, torchvision_v1, torchvision_v2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_every_float(
    request: pytest.FixtureRequest, kind: Callable[..., Any], memory_format: torch.memory_format, dtype: torch.dtype
) -> None:
    torchvision = request.getfixturevalue("torchvision") if "torchvision" in kind.__name__ else None
    data = blobs(transform=kind(dtype, torchvision))
    ours = DataLoader(data, batch_size=5, num_workers=2, seed=2, memory_format=memory_format)
    assert_same(ours, ours.reference())
    images, _ = next(iter(ours))
    assert images.dtype == dtype and images.is_contiguous(memory_format=memory_format)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("last", [T.PILToTensor(), T.ToImage()], ids=repr)
def test_bytes(last: Any, memory_format: torch.memory_format) -> None:
    data = blobs(transform=T.Compose([T.RandomResizedCrop(40), T.RandomHorizontalFlip(), last]))
    ours = DataLoader(data, batch_size=5, num_workers=2, seed=2, memory_format=memory_format)
    assert_same(ours, ours.reference())
    assert next(iter(ours))[0].dtype == torch.uint8


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_dtype_argument(dtype: torch.dtype) -> None:
    end = [T.ToImage()] if dtype == torch.uint8 else TENSOR
    ours = DataLoader(blobs(transform=T.Compose([T.Resize((30, 30)), *end])), batch_size=9, dtype=dtype)
    assert_same(ours, ours.reference())
    assert next(iter(ours))[0].dtype == dtype


@pytest.fixture(scope="module")
def expected(mixture: list[Path]) -> dict[str, list[Any]]:
    """The oracle's batches of two epochs."""
    one = DataLoader(dataset(mixture, train(112)), batch_size=16, shuffle=True, seed=9)
    batches = {}
    with silent_pillow():
        for epoch in range(2):
            one.set_epoch(epoch)
            batches[f"epoch {epoch}"] = list(one.reference())
    return batches


@pytest.mark.parametrize(
    ("workers", "persistent"), [(0, False), (1, False), (1, True), (2, False), (2, True), (7, False), (7, True)]
)
def test_every_number_of_threads(
    mixture: list[Path], expected: dict[str, list[Any]], workers: int, persistent: bool
) -> None:
    ours = DataLoader(
        dataset(mixture, train(112)), 16, shuffle=True, seed=9, num_workers=workers, persistent_workers=persistent
    )
    with silent_pillow():
        for epoch in range(2):
            assert_same(ours, expected[f"epoch {epoch}"])


@pytest.mark.parametrize("isa", core.isas())
def test_every_instruction_set(
    mixture: list[Path], expected: dict[str, list[Any]], isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def engine(*arguments: Any, **options: Any) -> ImageEngine:
        made.append(ImageEngine(*arguments, **options, isa=isa))
        return made[-1]

    monkeypatch.setattr(device_engine, "ImageEngine", engine)
    ours = DataLoader(dataset(mixture, train(112)), 16, shuffle=True, seed=9, num_workers=2)
    with silent_pillow():
        assert_same(ours, expected["epoch 0"])
    assert len(made) == 1


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_torchs_own_loader_over_torchvision(
    photographs: list[Path], torchvision: ModuleType, version: str, tmp_path: Path
) -> None:
    """Without the oracle: if no step is random, torch's DataLoader gives the same batches."""
    t = torchvision.transforms if version == "v1" else torchvision.transforms.v2
    end = [t.ToTensor()] if version == "v1" else [t.ToImage(), t.ToDtype(torch.float32, scale=True)]
    transform = t.Compose([t.Resize(256), t.CenterCrop(224), *end, t.Normalize(MEAN, STD)])
    for i, photograph in enumerate(photographs):
        (tmp_path / f"class_{i % 4}").mkdir(exist_ok=True)
        (tmp_path / f"class_{i % 4}" / photograph.name).symlink_to(photograph)
    folder = torchvision.datasets.ImageFolder(tmp_path, transform)
    order: dict[str, Any] = {"batch_size": 8, "shuffle": True}
    theirs = torch.utils.data.DataLoader(folder, **order, generator=torch.Generator().manual_seed(4))
    ours = DataLoader(folder, **order, generator=torch.Generator().manual_seed(4), num_workers=2)
    for made, wanted in zip(ours, theirs, strict=True):
        # Without ToPureTensor, torchvision's v2 returns its own subclass of tensors.
        assert torch.equal(made[0], wanted[0].as_subclass(torch.Tensor)) and torch.equal(made[1], wanted[1])
