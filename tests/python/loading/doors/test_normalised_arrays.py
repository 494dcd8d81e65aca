"""albumentations' Normalize of arrays: its own arrays, for all kinds of arguments and images."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

import headrace
from headrace._loading.doors import normalised_arrays, opened_doors
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts

A: Any = pytest.importorskip("albumentations", reason="albumentations is not installed")

pytestmark = pytest.mark.pixels

NORMALIZES: dict[str, dict[str, Any]] = {
    "default": {},
    "other values": {"mean": (0.1, 0.2, 0.3), "std": (0.5, 0.25, 0.1), "max_pixel_value": 128.0},
    "one value": {"mean": 0.5, "std": 0.25},
    "of the image": {"normalization": "image"},
    "of the channel": {"normalization": "min_max_per_channel"},
}
RANDOM = np.random.default_rng(4)
IMAGES: dict[str, Any] = {
    "photo": RANDOM.integers(0, 256, (97, 113, 3), dtype=np.uint8),
    "all bytes": np.arange(3 * 65536, dtype=np.int64).reshape(256, 256, 3).astype(np.uint8),
    "small": RANDOM.integers(0, 256, (9, 7, 3), dtype=np.uint8),
    "view": RANDOM.integers(0, 256, (120, 130, 3), dtype=np.uint8)[3:, 5:],
    "mirrored": RANDOM.integers(0, 256, (120, 130, 3), dtype=np.uint8)[:, ::-1],
    "gray": RANDOM.integers(0, 256, (97, 113), dtype=np.uint8),
    "one channel": RANDOM.integers(0, 256, (97, 113, 1), dtype=np.uint8),
    "four channels": RANDOM.integers(0, 256, (97, 113, 4), dtype=np.uint8),
    "floats": RANDOM.random((97, 113, 3), dtype=np.float32),
}


def see(function: Any, image: Any) -> Any:
    try:
        made = function(image=image)["image"]
    except Exception as error:
        return type(error), str(error)
    flags = made.flags.owndata, made.flags.writeable, made.flags.c_contiguous
    return made.dtype.str, made.shape, made.strides, flags, type(made), made.tobytes()


@pytest.mark.parametrize("name", NORMALIZES)
def test_arrays_are_equal(name: str) -> None:
    opened_doors.add_doors()
    normalize = A.Normalize(**NORMALIZES[name])
    expected = {kind: see(normalize, image) for kind, image in IMAGES.items()}
    with deferred_here(ImageCounts()):
        for one in (normalize, A.Compose([normalize]), copy.deepcopy(normalize), pickle.loads(pickle.dumps(normalize))):
            found = {kind: see(one, image) for kind, image in IMAGES.items()}
            assert [kind for kind in IMAGES if found[kind] != expected[kind]] == []


def test_it_is_native_and_stays_albumentations_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_doors.add_doors()
    calls: list[Any] = []
    plain = normalised_arrays.map_bytes

    def map_bytes(*args: Any) -> Any:
        calls.append(args)
        return plain(*args)

    monkeypatch.setattr(normalised_arrays, "map_bytes", map_bytes)
    normalize, function, code = A.Normalize(), A.Normalize.apply, A.Normalize.apply.__code__
    compose = A.Compose([normalize])  # holds the method from before
    with deferred_here(ImageCounts()):
        compose(image=IMAGES["photo"])
        assert A.Normalize.apply is function and len(calls) == 1
        normalize.mean_np = normalize.mean_np + 1  # a change takes effect
        changed = compose(image=IMAGES["photo"])["image"]
    assert A.Normalize.apply.__code__ is code
    assert np.array_equal(changed, compose(image=IMAGES["photo"])["image"])
    compose(image=IMAGES["photo"])
    assert len(calls) == 2


class Arrays(Dataset[Any]):
    def __init__(self) -> None:
        from albumentations.pytorch import ToTensorV2

        self.steps = A.Compose([A.RandomCrop(80, 80), A.HorizontalFlip(), A.Normalize(), ToTensorV2()], seed=3)

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        return self.steps(image=np.roll(IMAGES["photo"], index, 0))["image"], index


@pytest.mark.processes
def test_batches_of_a_dataset_are_equal() -> None:
    def begin(kind: Any) -> list[Any]:
        torch.manual_seed(0)
        return list(kind(Arrays(), 4, num_workers=2))

    for (made, _), (expected, _) in zip(begin(headrace.DataLoader), begin(TorchDataLoader), strict=True):
        assert torch.equal(made, expected) and made.stride() == expected.stride()
