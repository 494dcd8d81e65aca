"""Batches by aspect ratio: one size per batch, every sample once, the pixels of Pillow and torchvision."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace import DataLoader, EncodedImages, ImageArray, ImageFolder
from headrace import transforms as T
from headrace._recipe.steps.aspect_sizes import cropped_fractions, nearest, nearest_of
from headrace.sampler import AspectRatioBatchSampler
from support import TENSOR, assert_same, blobs, pictures, recipe_of, train, truncated, write_folder

SIZES = [(32, 64), (40, 48), (48, 48), (48, 40), (64, 32)]
COUNT = 60


def crops(size: tuple[int, int]) -> T.Compose:
    return T.Compose([T.RandomResizedCrop(size), T.RandomHorizontalFlip(), *TENSOR])


def centre(size: tuple[int, int]) -> T.Compose:
    return T.Compose([T.ResizedCenterCrop(size), *TENSOR])


def shapes(count: int = COUNT) -> tuple[bytes, ...]:
    """Pictures of five shapes."""
    made = []
    for number, data in enumerate(pictures(count)):
        with Image.open(BytesIO(data)) as image:
            height, width = SIZES[number // 3 % 5]
            out = BytesIO()
            image.convert("RGB").resize((2 * width + number % 7, 2 * height + number % 3)).save(out, "JPEG")
        made.append(out.getvalue())
    return tuple(made)


def data(make: Any = crops) -> EncodedImages:
    return EncodedImages(shapes(), range(COUNT), T.ByAspectRatio({size: make(size) for size in SIZES}))


def test_the_nearest_ratio() -> None:
    assert [nearest(SIZES, *size) for size in ((100, 200), (100, 121), (7, 7), (500, 1), (1, 500))] == [0, 1, 2, 4, 0]
    assert nearest([(1, 2), (2, 1)], 5, 5) == 0  # a tie: the first one
    assert nearest_of(SIZES, np.array([[0, 0], [90, 45]])).tolist() == [0, 4]


@pytest.mark.parametrize(("size", "multiple", "ratio"), [(224, 32, 2.0), (224, 16, 1.5), (512, 64, 3.0), (32, 32, 1)])
def test_sizes_of_one_area(size: int, multiple: int, ratio: float) -> None:
    sizes = T.aspect_ratio_sizes(size, multiple, ratio)
    assert (size, size) in sizes and len(set(sizes)) == len(sizes)
    for height, width in sizes:
        assert height % multiple == width % multiple == 0
        assert height * width <= size * size < height * (width + multiple)
        assert max(height / width, width / height) <= ratio


@pytest.mark.parametrize("arguments", [(224, 30), (0,), (224, 32, 0.5), (2.5,)])
def test_sizes_that_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((ValueError, TypeError), match="must be"):
        T.aspect_ratio_sizes(*arguments)


@pytest.mark.parametrize("shape", [(100, 50), (50, 100), (64, 64), (77, 101), (33, 200)])
def test_the_largest_centred_box(shape: tuple[Any, ...]) -> None:
    """The box is computed here: the largest box of the ratio that fits into the image, centred."""
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    for size in SIZES:
        height, width = shape[0], round(shape[0] * size[1] / size[0])
        if width > shape[1]:
            height, width = round(shape[1] / (size[1] / size[0])), shape[1]
        top, left = (shape[0] - height) // 2, (shape[1] - width) // 2
        box = image.crop((left, top, left + width, top + height))
        expected = box.resize((size[1], size[0]), Image.Resampling.BILINEAR)
        assert np.array_equal(np.asarray(T.ResizedCenterCrop(size)(image)), np.asarray(expected))
        kept = width * height / (shape[0] * shape[1])
        assert (
            abs(1 - kept - cropped_fractions([size], np.array([shape]))[0]) < 0.02
        )  # cut_off does not round to whole pixels


@pytest.mark.parametrize("size", [(24, 24), (20, 36), (36, 20)])
def test_a_resized_center_crop_alone_is_native(size: tuple[Any, ...]) -> None:
    loader = DataLoader(blobs(24, centre(size)), 6)
    assert loader.native and "0 differ" in str(loader.verify())
    plain = torch.stack([loader.dataset[i][0] for i in range(24)])
    assert torch.equal(torch.cat([images for images, _ in loader]), plain)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [crops, centre])
def test_an_epoch_holds_every_sample_once_in_batches_of_one_size(workers: int, make: Callable[..., Any]) -> None:
    dataset = data(make)
    sampler = AspectRatioBatchSampler(dataset, 4, seed=3)
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=workers, seed=3)
    assert loader.native and "0 differ" in str(loader.verify(len(loader)))
    orders = []
    for _ in range(2):
        expected = loader.reference()
        batches = list(loader)
        assert_same(batches, expected)
        assert len(batches) == len(loader)
        assert {tuple(images.shape[2:]) for images, _ in batches} == set(SIZES)
        orders.append([labels.tolist() for _, labels in batches])
        assert sorted(label for batch in orders[-1] for label in batch) == list(range(COUNT))
        incomplete = Counter(tuple(images.shape[2:]) for images, _ in batches if len(images) < 4)
        assert set(incomplete.values()) <= {1}
    assert orders[0] != orders[1]


def test_what_each_size_makes_is_what_its_transform_makes() -> None:
    """Compared with the dataset itself, in plain Python."""
    dataset = data(centre)
    loader = DataLoader(dataset, batch_sampler=AspectRatioBatchSampler(dataset, 4))
    for images, labels in loader:
        assert torch.equal(images, torch.stack([dataset[i][0] for i in labels.tolist()]))


def test_steps_behind_it_are_applied_to_every_size() -> None:
    steps = [T.ByAspectRatio({size: T.ResizedCenterCrop(size) for size in SIZES}), T.RandomHorizontalFlip(), *TENSOR]
    dataset = EncodedImages(shapes(), range(COUNT), T.Compose(steps))
    loader = DataLoader(dataset, batch_sampler=AspectRatioBatchSampler(dataset, 8), seed=1, num_workers=2)
    assert loader.native and "0 differ" in str(loader.verify(len(loader)))


def test_a_folder_arrays_and_a_device(tmp_path: Path) -> None:
    folder = ImageFolder(write_folder(tmp_path), T.ByAspectRatio({size: crops(size) for size in SIZES}))
    loader = DataLoader(folder, batch_sampler=AspectRatioBatchSampler(folder, 4), seed=1)
    assert "0 differ" in str(loader.verify(len(loader)))
    emulated = DataLoader(folder, batch_sampler=AspectRatioBatchSampler(folder, 4), seed=1, device="emulated")
    assert "0 differ" in str(emulated.verify(len(emulated)))
    emulated.close()
    arrays = ImageArray(torch.zeros(6, 30, 60, 3, dtype=torch.uint8), range(6), folder.transform)
    sampler = AspectRatioBatchSampler(arrays, 4)
    assert sampler.image_sizes.tolist() == [[30, 60]] * 6
    assert [len(images) for images, _ in DataLoader(arrays, batch_sampler=sampler)] in ([4, 2], [2, 4])


def test_persistent_workers_state_and_ranks() -> None:
    dataset = data()

    def loader(**options: Any) -> DataLoader:
        sampler = AspectRatioBatchSampler(dataset, 4, seed=3)
        return DataLoader(dataset, batch_sampler=sampler, seed=3, num_workers=1, persistent_workers=True, **options)

    alone = loader()
    first, second = list(alone), list(alone)
    alone.set_epoch(1)
    iterator = iter(alone)
    [next(iterator) for _ in range(5)]
    resumed = loader()
    resumed.load_state_dict(alone.state_dict())
    assert_same(resumed, second[5:])
    parts = [list(loader(rank=rank, world_size=2)) for rank in range(2)]
    dealt = [batch for step in zip(*parts, strict=True) for batch in step]
    assert_same(dealt[: len(first)], first)
    assert alone.stats().bottleneck
    alone.close()
    resumed.close()


def test_a_broken_file_costs_its_own_place_only() -> None:
    files = list(shapes())
    files[7], files[11] = truncated(files[7]), b"nothing"
    dataset = EncodedImages(files, range(COUNT), data().transform)
    sampler = AspectRatioBatchSampler(dataset, 4, seed=3)
    assert sampler.image_sizes[11].tolist() == [0, 0]
    loader = DataLoader(dataset, batch_sampler=sampler, seed=3, on_error="skip")
    with pytest.warns(UserWarning, match="2 samples could not be made and were skipped"):
        seen = [label for _, labels in loader for label in labels.tolist()]
    assert sorted(seen) == [label for label in range(COUNT) if label not in (7, 11)]
    with pytest.raises(ValueError, match=r'on_error="replace" does not work with ByAspectRatio'):
        DataLoader(dataset, batch_sampler=sampler, on_error="replace")


def test_batches_of_several_sizes_are_refused() -> None:
    loader = DataLoader(data(), 4)
    with pytest.raises(
        ValueError, match=r"sample 3 has output size \(40, 48\), but sample 0 of its batch has \(32, 64\); use head"
    ):
        list(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_of_several_sizes_is_behind_once_it_has_raised(workers: int) -> None:
    loader = DataLoader(data(), batch_sampler=[[0, 1], [2, 3], [4, 5], [6, 7]], num_workers=workers)
    iterator = iter(loader)
    assert next(iterator)[1].tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"sample 3 has output size \(40, 48\), but sample 2 of its batch"):
        next(iterator)
    assert next(iterator)[1].tolist() == [4, 5]
    resumed = DataLoader(data(), batch_sampler=[[0, 1], [2, 3], [4, 5], [6, 7]])
    resumed.load_state_dict(loader.state_dict())
    assert [labels.tolist() for _, labels in resumed] == [[6, 7]]


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
def test_stats_of_several_engines(workers: int, persistent: bool) -> None:
    dataset = data()
    sampler = AspectRatioBatchSampler(dataset, 4, seed=3)
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=workers, persistent_workers=persistent)
    assert loader.stats().bottleneck == "nothing yet"
    for _ in range(2):
        iterator = iter(loader)
        assert loader.stats().bottleneck
        for _ in iterator:
            assert loader.stats().stages
        read = next(stage for stage in loader.stats().stages if stage.name == "read")
        assert read.items == COUNT
    loader.close()


def test_sizes_of_the_same_steps_draw_the_same_numbers() -> None:
    """The sizes share their columns of draws, because all columns are drawn for each sample."""
    columns = len(recipe_of(DataLoader(blobs(4, crops((32, 32))))).columns)
    assert len(recipe_of(DataLoader(data())).columns) == columns
    mixed = {(32, 32): crops((32, 32)), (32, 64): T.Compose([T.RandomCrop((32, 64), pad_if_needed=True), *TENSOR])}
    dataset = EncodedImages(shapes(), range(COUNT), T.ByAspectRatio(mixed))
    loader = DataLoader(dataset, batch_sampler=AspectRatioBatchSampler(dataset, 4), seed=1)
    assert loader.native and len(recipe_of(loader).columns) == columns + 2
    assert "0 differ" in str(loader.verify(len(loader)))


def test_without_shuffle_and_incomplete_batches() -> None:
    dataset = data()
    sampler = AspectRatioBatchSampler(dataset, 5, shuffle=False, drop_last=True)
    batches = list(sampler)
    assert len(batches) == len(sampler) and all(len(batch) == 5 and batch == sorted(batch) for batch in batches)
    known = AspectRatioBatchSampler(dataset, 5, shuffle=False, drop_last=True, image_sizes=sampler.image_sizes)
    assert list(known) == batches


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be 1 or more"),
        ({"batch_size": 4, "sizes": []}, ValueError, "there is no output size"),
        ({"batch_size": 4, "sizes": [(0, 4)]}, ValueError, "height must be 1 or more"),
        ({"batch_size": 4, "image_sizes": [[1, 2]]}, ValueError, r"as integers \(60, 2\) is needed"),
        ({"batch_size": 4, "image_sizes": np.ones((COUNT, 2))}, ValueError, "float64"),
    ],
)
def test_samplers_that_are_refused(arguments: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        AspectRatioBatchSampler(data(), **arguments)
    with pytest.raises(ValueError, match=r"give sizes=\[\(height, width\), ...\], or the dataset a ByAspectRatio"):
        AspectRatioBatchSampler(blobs(4, train(16)), 4)
    with pytest.raises(
        ValueError, match=r"headrace does not know builtins.list.*give the sizes of its images as image_sizes="
    ):
        AspectRatioBatchSampler([1, 2], 4, sizes=SIZES)


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (T.Compose([T.Resize(60), T.ByAspectRatio({(32, 32): crops((32, 32))})]), "it must be the first step"),
        (T.ByAspectRatio({(32, 32): crops((32, 30))}), r"the transform for \(32, 32\) has outputs of \(32, 30\)"),
        (
            T.ByAspectRatio({(32, 32): crops((32, 32)), (16, 64): T.Compose([T.Resize((16, 64)), T.ToTensor()])}),
            "its transforms map bytes to different values; only sizes may differ",
        ),
    ],
)
def test_transforms_that_torch_has_to_call(transform: Any, words: str) -> None:
    reason = str(DataLoader(blobs(8, transform)).explain())
    assert re.search(words, reason), reason


@pytest.mark.parametrize("transforms", [{}, [crops((32, 32))], {32: crops((32, 32))}, {(0, 5): crops((32, 32))}])
def test_mappings_that_are_refused(transforms: dict[str, Any] | list[Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"should be|at least one"):
        T.ByAspectRatio(transforms)  # type: ignore[arg-type]


def test_few_pixels_are_cut_off(imagenet_dev: Path) -> None:
    """Compared with square crops; docs/samplers.md gives the figures."""
    dataset = ImageFolder(imagenet_dev, None)
    sizes = T.aspect_ratio_sizes(224, 32)
    found = AspectRatioBatchSampler(dataset, 32, sizes).image_sizes
    with_buckets, square = cropped_fractions(sizes, found).mean(), cropped_fractions([(224, 224)], found).mean()
    assert len(found) == 160 and with_buckets < square / 3
