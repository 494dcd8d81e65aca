"""Images of native resolution as packed patches: grids, native pixels, bins within their budget."""

from __future__ import annotations

import io
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace.sampler import PackingBatchSampler, PatchPackingCollate, patch_counts
from support import TENSOR, assert_same

SIZES = [(90, 60), (61, 200), (33, 33), (300, 20), (8, 9), (120, 121), (14, 210), (77, 154), (199, 201), (25, 400)]


def smart_resize(height: int, width: int, factor: int, least: int, most: int) -> tuple[int, int]:
    """As in transformers' processor of Qwen2-VL; (rows, columns) of the grid. `least`, `most`: pixels."""
    rows, columns = round(height / factor) * factor, round(width / factor) * factor
    if rows * columns > most:
        beta = math.sqrt((height * width) / most)
        rows = max(factor, math.floor(height / beta / factor) * factor)
        columns = max(factor, math.floor(width / beta / factor) * factor)
    elif rows * columns < least:
        beta = math.sqrt(least / (height * width))
        rows, columns = math.ceil(height * beta / factor) * factor, math.ceil(width * beta / factor) * factor
    return rows // factor, columns // factor


@pytest.mark.parametrize(("patch", "least", "most"), [(28, 4, 1280), (14, 1, 256), (16, 64, 1024), (28, 4, 16384)])
def test_grids_are_those_of_smart_resize(patch: int, least: int, most: int) -> None:
    sizes = np.random.default_rng(patch).integers(1, 4000, (5000, 2))
    sizes = sizes[sizes.max(axis=1) <= 12 * sizes.min(axis=1)]
    grids = T.ResizeToPatches(patch, most, least).grids(sizes)
    area = patch * patch
    expected = [smart_resize(height, width, patch, least * area, most * area) for height, width in sizes.tolist()]
    assert list(map(tuple, grids.tolist())) == expected
    assert grids.min() >= 1 and grids.prod(axis=1).max() <= most


def test_slivers_stay_within_the_budget() -> None:
    edges = [1, 2, 7, 30, 500, 5000, 60000]
    for most in (1, 2, 5, 64, 1000):
        for least in {1, most}:
            grids = T.ResizeToPatches(14, most, least).grids(list(product(edges, edges)))
            assert grids.min() >= 1 and grids.prod(axis=1).max() <= most


def encoded() -> list[bytes]:
    """JPEGs of the sizes."""
    random = np.random.default_rng(2)
    data = []
    for height, width in SIZES:
        file = io.BytesIO()
        small = random.integers(0, 256, (5, 7, 3), dtype=np.uint8)
        Image.fromarray(small).resize((width, height)).save(file, "JPEG", quality=90)
        data.append(file.getvalue())
    return data


def images(*more: Any, most: int = 40, **options: Any) -> EncodedImages:
    steps = T.Compose([T.ResizeToPatches(14, most, **options), *more, *TENSOR])
    return EncodedImages(encoded(), list(range(len(SIZES))), steps)


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear", "lanczos"])
@pytest.mark.parametrize("most", [3, 40, 500])
def test_native_pixels_are_pillows(most: int, interpolation: Any) -> None:
    data = images(T.RandomHorizontalFlip(), most=most, min_patches=2, interpolation=interpolation)
    loader = DataLoader(data, None, seed=1, num_workers=2)
    assert loader.native and loader.verify(len(SIZES)).samples == len(SIZES)
    assert_same(DataLoader(images(most=most), None), TorchDataLoader(images(most=most), None))


def test_one_size_is_known_without_an_image() -> None:
    data = images(most=1)
    batch = next(iter(DataLoader(data, len(SIZES), num_workers=1)))
    assert batch[0].shape == (len(SIZES), 3, 14, 14)
    fixed = EncodedImages(encoded(), None, T.Compose([T.CenterCrop((40, 60)), T.ResizeToPatches(14, 6), *TENSOR]))
    assert next(iter(DataLoader(fixed, 2))).shape == (2, 3, 28, 42)


def test_bins_of_patches() -> None:
    """One tensor a bin, as torch's loader makes it from the same transforms; equal after a resume."""
    data = images()
    counts = patch_counts(data)
    options: dict[str, Any] = {"collate_fn": PatchPackingCollate(14)}

    def bins() -> PackingBatchSampler:
        return PackingBatchSampler(counts, 100, seed=1)

    ours = DataLoader(data, batch_sampler=bins(), num_workers=2, **options)
    assert ours.native
    batches = [[*patches, labels] for patches, labels in ours]
    assert_same(batches, [[*p, labels] for p, labels in TorchDataLoader(data, batch_sampler=bins(), **options)])
    for values, ends, positions, longest, grids, labels in batches:
        assert values.shape == (ends[-1], 3 * 14 * 14) and len(values) <= 100
        assert torch.equal(grids.prod(1), torch.from_numpy(counts)[labels]) and longest == counts[labels].max()
        assert torch.equal(positions[-1], grids[-1] - 1)
    first = DataLoader(data, batch_sampler=bins(), num_workers=2, **options)
    iterator = iter(first)
    next(iterator)
    rest = DataLoader(data, batch_sampler=bins(), **options)
    rest.load_state_dict(first.state_dict())
    assert_same([[*patches, labels] for patches, labels in rest], batches[1:])


def test_counts_without_headers_and_what_is_refused() -> None:
    data = images()
    assert np.array_equal(patch_counts(data), patch_counts(data, SIZES))
    with pytest.raises(ValueError, match="must begin with ResizeToPatches"):
        patch_counts(EncodedImages([], None, T.ToTensor()))
    with pytest.raises(ValueError, match="image_sizes are"):
        patch_counts(data, SIZES[:2])
    for arguments, words in (((0, 4), "patch must be 1"), ((14, 0), "max_patches must be 1"), ((14, 3, 4), "exceeds")):
        with pytest.raises(ValueError, match=words):
            T.ResizeToPatches(*arguments)
    with pytest.raises(ValueError, match=r"cubist"):
        T.ResizeToPatches(14, 4, interpolation="cubist")
