"""Memory stays flat, belongs to its holder and is returned: kept batches do not change, slots are bounded."""

from __future__ import annotations

import gc
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headrace import DataLoader, EncodedImages, ImageFolder
from support import assert_same, blobs, evaluation, eventually, pictures, resident_mb, train, write_folder

pytestmark = pytest.mark.slow

SLOT_MB = 64 * 3 * 224 * 224 * 4 / 1e6


@pytest.mark.parametrize("persistent", [False, True])
def test_resident_size_is_flat_from_epoch_2_to_20(photographs: list[Path], persistent: bool, tmp_path: Path) -> None:
    """The growth is below a fifth of one batch; a leak of one batch per epoch would add 18 batches."""
    folder = tmp_path / "class"
    folder.mkdir()
    for i in range(128):
        (folder / f"{i}.jpg").symlink_to(photographs[i % len(photographs)])
    (folder / "odd.jpg").write_bytes(pictures()[3])  # Pillow's lane too
    loader = DataLoader(
        ImageFolder(tmp_path, train()), 64, True, num_workers=2, drop_last=True, persistent_workers=persistent, seed=1
    )
    sizes = []
    for _ in range(20):
        for images, _ in loader:
            assert images.shape == (64, 3, 224, 224)
        sizes.append(resident_mb())
    assert max(sizes[2:]) - sizes[1] < SLOT_MB / 5
    loader.close()
    del images, loader, _
    assert eventually(lambda: resident_mb() < sizes[1] - (2 if persistent else 0) * SLOT_MB)


def digest(images: torch.Tensor) -> str:
    return hashlib.sha256(images.numpy().tobytes()).hexdigest()


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_who_keeps_50_batches_has_50_unchanged_batches(memory_format: torch.memory_format) -> None:
    loader = DataLoader(blobs(), 3, True, num_workers=2, persistent_workers=True, seed=1, memory_format=memory_format)
    kept: list[Any] = []
    digests = []
    while len(kept) < 50:
        for images, _ in loader:
            kept.append(images)
            digests.append(digest(images))
    assert loader._engine is not None and loader._engine.slots >= 50
    assert [digest(images) for images in kept] == digests and len(set(digests)) == len(kept)
    for _ in range(3):  # these epochs must not reuse the memory of kept batches
        list(loader)
    assert [digest(images) for images in kept] == digests
    loader.close()
    del loader
    gc.collect()
    assert [digest(images) for images in kept] == digests


def engine_of(loader: DataLoader) -> Any:
    return loader._engine


def test_slots_come_back_when_the_last_tensor_on_them_dies() -> None:
    loader = DataLoader(blobs(transform=evaluation(20, 16)), 4, num_workers=1, prefetch_factor=1)
    iterator = iter(loader)
    bound = 3  # one in flight, one that the caller holds, and the one that it replaces
    holders: list[Any] = [
        lambda images: images,
        lambda images: images[1:3, 0],
        lambda images: images.view(-1),
        lambda images: images.numpy(),
        lambda images: np.asarray(images)[0, 0, ::2],
        lambda images: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(images)),  # type: ignore[attr-defined]
    ]
    kept = [hold(next(iterator)[0]) for hold in holders]
    made = engine_of(loader).slots
    assert made >= len(holders)
    expected = [one.copy() if isinstance(one, np.ndarray) else one.clone() for one in kept]
    again = DataLoader(blobs(transform=evaluation(20, 16)), 4)
    for one, copy, hold, (images, _) in zip(kept, expected, holders, again, strict=True):
        assert np.array_equal(one, copy) and np.array_equal(one, hold(images))
    del kept, one, images
    assert engine_of(loader).slots <= bound
    with pytest.raises(StopIteration):
        next(iterator)
    assert engine_of(loader).slots == 0


@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_slots_are_bounded_by_the_prefetch(prefetch: int) -> None:
    loader = DataLoader(EncodedImages(pictures() * 5, None, train(32)), 2, num_workers=2, prefetch_factor=prefetch)
    most = 0
    for images in loader:
        most = max(most, engine_of(loader).slots)
        assert images.shape[0] == 2
    assert most <= prefetch + 2


def test_inline_needs_no_more_than_what_is_held() -> None:
    loader = DataLoader(EncodedImages(pictures() * 2, None, train(32)), 2)
    for _images in loader:
        assert engine_of(loader).slots <= 2


def test_tensors_may_be_written_to() -> None:
    """The caller owns the tensors: a write to them changes nothing else."""
    loader, other = (DataLoader(blobs(), 3, seed=1, num_workers=1) for _ in range(2))
    expected = list(other)
    for (images, labels), (wanted, _) in zip(loader, expected, strict=True):
        assert torch.equal(images, wanted)
        images.mul_(0).sub_(1)
        labels.fill_(-1)
    assert expected[0][1].tolist() == [0, 1, 2] and loader._source.target(0) == 0


def test_a_smaller_last_batch_and_growing_batches() -> None:
    growing = [[0], [1, 2], [3, 4, 5, 6], list(range(7, 24)), [1]]
    loader = DataLoader(blobs(), batch_sampler=growing, seed=1, num_workers=2)
    kept = list(loader)
    assert_same(kept, DataLoader(blobs(), batch_sampler=growing, seed=1))
    assert [len(labels) for _, labels in kept] == [len(one) for one in growing]


def test_a_folder_of_many_files_takes_one_string_and_two_numbers_a_file(tmp_path: Path) -> None:
    """bench/big_list.py measures the memory for a million files."""
    root = write_folder(tmp_path, 3, 1)
    for i in range(1000):
        (root / "class_0" / f"n{i:07}.JPEG").touch()
    data = ImageFolder(root, train(32))
    path = len(data.samples[-1][0]) + 1
    held = [value for value in (*vars(data).values(), *vars(data.paths).values()) if hasattr(value, "__len__")]
    sizes = [getattr(value, "nbytes", len(value)) for value in held]
    assert sum(sizes) < len(data) * (path + 8 + 8) + 2000
