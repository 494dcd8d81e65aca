"""Several views of one decode equal the oracle's, and what each transform alone makes of the same draws."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages, ImageArray, ImageFiles
from headrace import transforms as T
from headrace._base.native import core
from headrace._engine.image_engine import ImageEngine
from headrace._engine.views_engine import ViewsEngine
from headrace._lowering import lower
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import DTYPES
from support import MEAN, STD, TENSOR, assert_same, blobs, evaluation, pictures, same, silent_pillow, train

JITTER = T.ColorJitter(0.4, 0.4, 0.2, 0.1)


def simclr(size: int = 64) -> T.Compose:
    blur = T.RandomApply([T.GaussianBlur(5)], 0.5)
    colours = [T.RandomApply([JITTER], 0.8), T.RandomGrayscale(0.2)]
    return T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip(), *colours, blur, *TENSOR])


def dino(size: int, scale: tuple[float, float], *more: Any) -> T.Compose:
    crop = T.RandomResizedCrop(size, scale, interpolation=T.InterpolationMode.BICUBIC)
    return T.Compose([crop, T.RandomHorizontalFlip(), T.RandomApply([JITTER], 0.8), *more, *TENSOR])


VIEWS: dict[str, Any] = {
    "SimCLR": T.Views([simclr(), simclr()]),
    "DINO": T.Views(
        [
            dino(64, (0.4, 1.0), T.GaussianBlur(5)),
            dino(64, (0.4, 1.0), T.RandomSolarize(128, 0.2)),
            *[dino(24, (0.05, 0.4))] * 8,
        ]
    ),
    "tiny crops": T.Views([T.Compose([T.RandomResizedCrop(16, (0.0001, 0.01)), T.ToImage()])] * 4),
    "a crop and the whole": T.Views([evaluation(40, 32), train(32), T.Compose([T.Resize((20, 50)), T.ToTensor()])]),
    "padded": T.Views(
        [
            T.Compose([T.RandomCrop(48, padding=70, pad_if_needed=True, padding_mode="reflect"), T.ToTensor()]),
            T.Compose([T.Pad((3, 9, 0, 30), (1, 200, 9)), T.CenterCrop(300), T.ToImage()]),
            T.Compose([T.RandomVerticalFlip(), T.RandomEqualize(), T.RandomResizedCrop(9), T.ToImage()]),
        ]
    ),
    "kinds": T.Views(
        {
            "gray": T.Compose([T.RandomResizedCrop(30), T.Grayscale(), T.PILToTensor()]),
            "erased": T.Compose([T.RandomResizedCrop((20, 33)), *TENSOR, T.RandomErasing(0.8, value=(1, 2, 3))]),
            "same": train(32),
        }
    ),
    "common steps": T.Compose(
        [
            T.RandomResizedCrop(80),
            T.RandomHorizontalFlip(),
            T.Views([T.Compose([JITTER, T.RandomCrop(40), *TENSOR]), T.Compose([T.Resize((30, 30)), T.ToTensor()])]),
        ]
    ),
}


@pytest.mark.pixels
@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize("name", VIEWS)
def test_batches_of_all_kinds_of_files(name: str, workers: int) -> None:
    loader = DataLoader(blobs(24, VIEWS[name]), 7, shuffle=True, seed=3, num_workers=workers)
    assert loader.native
    for _ in range(2):
        expected = list(loader.reference())
        assert assert_same(loader, expected) == 4
    assert "4 batches, 24 samples" in str(loader.verify())


@pytest.mark.pixels
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SimCLR", "DINO", "tiny crops", "kinds"])
def test_every_file(files: list[Path], name: str) -> None:
    files = [path for path in files if path.stat().st_size < 300_000 and "jpegdec" not in path.name]
    files = files[:: -(-len(files) // 160)]
    loader = DataLoader(ImageFiles(files, range(len(files)), VIEWS[name]), 32, seed=5, num_workers=2)
    with silent_pillow():
        assert assert_same(loader, list(loader.reference())) == -(-len(files) // 32)


def pool() -> list[Any]:
    """Transforms that fit an image of any shape, down to one pixel."""
    shapes = [T.RandomResizedCrop(9), T.RandomResizedCrop((5, 40), (0.0001, 0.1)), T.Resize((20, 50)), T.CenterCrop(33)]
    shapes += [T.RandomCrop(12, padding=12, fill=9), T.Compose([T.Pad(3, 7), T.RandomResizedCrop(17)])]
    values: list[Any] = [
        T.RandomHorizontalFlip(),
        T.RandomVerticalFlip(1.0),
        T.RandomApply([JITTER]),
        T.RandomEqualize(),
    ]
    values += [T.RandomSolarize(99.0), T.Grayscale(3), T.RandomGrayscale()]
    return [T.Compose([shape, value, T.ToTensor()]) for shape in shapes for value in values]


@pytest.mark.pixels
@pytest.mark.parametrize("seed", range(10))
def test_random_views_of_odd_shapes(images: list[Image.Image], seed: int) -> None:
    random = np.random.default_rng(seed)
    files = []
    for number, image in enumerate(images):
        out = BytesIO()
        image.save(out, "JPEG", quality=92, subsampling=(number + seed) % 3)
        files.append(out.getvalue())
    members = pool()
    views = T.Views([members[i] for i in random.integers(len(members), size=random.integers(1, 12))])
    loader = DataLoader(EncodedImages(files, range(len(files)), views), 4, seed=seed, num_workers=2)
    for _ in range(3):
        assert assert_same(loader, list(loader.reference())) == 3


@pytest.mark.pixels
@pytest.mark.parametrize("place", ["this machine", "emulated"])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [None, *DTYPES[:3]])
def test_dtypes_layouts_and_a_device(place: str, memory_format: torch.memory_format, dtype: torch.dtype | None) -> None:
    options: dict[str, Any] = {"dtype": dtype, "memory_format": memory_format, "seed": 1, "num_workers": 2}
    if place == "emulated":
        pytest.importorskip("headrace._gpu")
        options["device"] = "emulated"
    views = T.Views([simclr(32), train(20), evaluation(40, 32)])
    loader = DataLoader(blobs(12, views), 5, **options)
    assert assert_same(loader, list(loader.reference())) == 3
    for batch, _ in loader:
        assert all(view.is_contiguous(memory_format=memory_format) for view in batch)
        assert {view.dtype for view in batch} == {dtype or torch.float32}
    assert "0 differ" in str(loader.verify())


@pytest.mark.pixels
@pytest.mark.parametrize("isa", core.isas())
@pytest.mark.parametrize("layout", Layout)
def test_every_instruction_set(isa: str, layout: Layout) -> None:
    recipe = lower(VIEWS["SimCLR"])
    engine = ViewsEngine(recipe, layout, threads=1, slots_kept=1, isa=isa)
    dataset = blobs(24)
    draws = Draws(recipe.columns, 9).batch(0, range(24), [0] * 24)
    flight = engine.submit(dataset.blob_table(), np.arange(24), draws)
    assert engine.wait(flight, 60)
    assert engine.failures(flight) == []
    made = engine.tensor(flight)
    for number in range(24):
        assert same(
            [view[number].contiguous() for view in made], reference_sample(dataset.image(number), recipe, draws[number])
        )
    engine.close()


def alone(transform: Any, draws: Any, count: int) -> torch.Tensor:
    """What an engine of one transform makes of these draws."""
    engine = ImageEngine(lower(transform), Layout.PLANAR, threads=0, slots_kept=1)
    flight = engine.submit(blobs(count).blob_table(), np.arange(count), draws)
    assert engine.wait(flight, 60)
    made = engine.tensor(flight).clone()
    engine.close()
    return made


@pytest.mark.pixels
def test_each_view_is_what_its_transform_alone_makes_of_its_draws() -> None:
    members = [simclr(), train(20), dino(30, (0.05, 0.2))]
    recipe = lower(T.Views(members))
    draws = Draws(recipe.columns, 2).batch(0, range(12), [0] * 12)
    engine = ViewsEngine(recipe, Layout.PLANAR, threads=2, slots_kept=1)
    flight = engine.submit(blobs(12).blob_table(), np.arange(12), draws)
    assert engine.wait(flight, 60)
    first = 0
    for member, view in zip(members, engine.tensor(flight), strict=True):
        columns = len(lower(member).columns)
        assert torch.equal(view, alone(member, draws[:, first : first + columns], 12))
        first += columns
    assert first == draws.shape[1]
    engine.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_one_view_is_its_transform(workers: int) -> None:
    plain = DataLoader(blobs(24, simclr()), 5, shuffle=True, seed=7, num_workers=workers)
    views = DataLoader(blobs(24, T.Views([simclr()])), 5, shuffle=True, seed=7, num_workers=workers)
    for (images, labels), (made, same_labels) in zip(plain, views, strict=True):
        assert same([images, labels], [made[0], same_labels]) and len(made) == 1


def test_views_of_equal_transforms_differ() -> None:
    (first, second), _ = next(iter(DataLoader(blobs(8, T.Views([train(32)] * 2)), 8, seed=1)))
    assert all(not torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.pixels
def test_without_targets_and_without_batches() -> None:
    """As torch collates and converts the samples of the dataset itself; these views draw nothing."""
    views = [evaluation(40, 32), T.Compose([T.Resize((9, 8)), T.ToImage()])]
    common = T.Compose([T.Resize(50), T.RandomHorizontalFlip(1.0), T.Views(views)])
    for transform in (T.Views(views), T.Views(dict(zip("ab", views, strict=True))), common):
        for labels in (range(5), None):
            dataset = EncodedImages(pictures(5), labels, transform)
            for batch_size in (2, None):
                loader = DataLoader(dataset, batch_size)
                assert loader.native
                assert_same(loader, list(TorchDataLoader(dataset, batch_size)))
                assert_same(loader, list(loader.reference()))
                assert "5 samples" in str(loader.verify(5))


@pytest.mark.pixels
def test_arrays() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 40, 3), dtype=np.uint8)
    crops: Sequence[Any] = [
        T.Compose([T.RandomCrop(28, padding=4), *TENSOR]),
        T.Compose([T.CenterCrop(9), T.ToImage()]),
    ]
    loader = DataLoader(ImageArray(pixels, range(20), T.Views(crops)), 6, True, seed=3, num_workers=2)
    assert loader.native
    assert assert_same(loader, list(loader.reference())) == 4


@pytest.mark.pixels
def test_torchvisions_objects(torchvision: ModuleType) -> None:
    tv = torchvision.transforms
    crop = tv.Compose([tv.RandomResizedCrop(32), tv.RandomHorizontalFlip(), tv.ToTensor(), tv.Normalize(MEAN, STD)])
    views = T.Views([crop, crop])
    loader = DataLoader(blobs(12, views), 6, seed=3, num_workers=1)
    assert loader.native
    assert_same(loader, DataLoader(blobs(12, T.Views([train(32)] * 2)), 6, seed=3))


@pytest.mark.pixels
def test_single_samples_are_of_torchvisions_class(torchvision: ModuleType) -> None:
    v2 = torchvision.transforms.v2
    crop = v2.Compose([v2.ToImage(), v2.CenterCrop(20)])
    dataset = EncodedImages(pictures(5), range(5), T.Views([crop, evaluation(30, 20)]))
    loader = DataLoader(dataset, None)
    assert loader.native and type(next(iter(loader))[0][0]) is torchvision.tv_tensors.Image
    assert_same(loader, list(TorchDataLoader(dataset, None)))


@pytest.mark.pixels
def test_timms_transforms() -> None:
    data = pytest.importorskip("timm.data")
    views = T.Views([data.create_transform(32, is_training=True, auto_augment=None, color_jitter=0.3)] * 2)
    loader = DataLoader(blobs(12, views), 5, seed=3, num_workers=2)
    assert loader.native
    assert assert_same(loader, list(loader.reference())) == 3


def test_a_state_goes_on_with_the_same_views() -> None:
    def loader(workers: int) -> DataLoader:
        return DataLoader(blobs(24, VIEWS["kinds"]), 5, shuffle=True, seed=3, num_workers=workers)

    whole = list(loader(0))
    first = loader(2)
    list(islice(iter(first), 2))
    second = loader(1)
    second.load_state_dict(first.state_dict())
    assert_same(second, whole[2:])
    other = DataLoader(blobs(24, T.Views([train(8)])), 5, shuffle=True, seed=3)
    with pytest.raises(ValueError, match="the transforms, the output size or the dtype differ"):
        other.load_state_dict(first.state_dict())
