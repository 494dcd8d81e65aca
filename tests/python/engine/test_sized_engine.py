"""Images of different sizes: single samples, batches of one, and lists for a collate_fn."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_collate

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._loading.native.loader_attributes import OnError
from support import TENSOR, pictures, same

SIZES = [(40, 31), (9, 50), (33, 33), (64, 20), (5, 7), (40, 31), (17, 90)]
WHOLE = T.Compose([*TENSOR])
SHORTER = T.Compose([T.Resize(16), T.Pad(2), *TENSOR, T.Normalize((0.5,) * 3, (0.2,) * 3)])


def image_file(width: int, height: int) -> bytes:
    noise = np.random.default_rng(width * height).integers(0, 256, (height, width, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(noise).save(file, "JPEG")
    return file.getvalue()


def photos(transform: Any = WHOLE) -> EncodedImages:
    return EncodedImages([image_file(*size) for size in SIZES], range(len(SIZES)), transform)


def listed(samples: list[Any]) -> Any:
    return [image for image, _ in samples], torch.tensor([label for _, label in samples])


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("transform", [WHOLE, SHORTER])
@pytest.mark.parametrize(
    ("size", "collate"), [(None, None), (1, None), (3, listed), (1, listed), (None, lambda one: one)]
)
def test_equal_to_torchs_loader(
    size: int | None, collate: Callable[..., Any] | None, transform: Any, workers: int
) -> None:
    data = photos(transform)
    expected = list(TorchDataLoader(data, size, collate_fn=collate))
    loader = DataLoader(data, size, collate_fn=collate, num_workers=workers)
    assert loader.native and "each image's own size" in str(loader.explain())
    for _ in range(2):
        assert same(list(loader), expected)
    assert same(list(loader.reference()), expected)
    assert loader.verify(10).samples == len(SIZES)


@pytest.mark.parametrize("collate", [None, listed])
def test_random_steps_and_resuming(collate: Callable[..., Any] | None) -> None:
    transform = T.Compose([T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.Resize(12), *TENSOR])
    options: dict[str, Any] = {"batch_size": 1 if collate is None else 2, "collate_fn": collate, "seed": 5}
    loader = DataLoader(photos(transform), shuffle=True, **options)
    expected = list(loader.reference())
    batches = iter(loader)
    first = [next(batches), next(batches)]
    other = DataLoader(photos(transform), shuffle=True, num_workers=2, **options)
    other.load_state_dict(loader.state_dict())
    assert same([*first, *other], expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_failed_samples(workers: int) -> None:
    data = EncodedImages([image_file(20, 30), b"broken", image_file(8, 9), b"", image_file(7, 3)], range(5), WHOLE)
    ways: tuple[tuple[OnError, list[int]], ...] = (("skip", [0, 2, 4]), ("replace", [0, 2, 2, 4, 4]))
    for on_error, labels in ways:
        for size, collate in ((1, None), (3, listed)):
            loader = DataLoader(data, size, collate_fn=collate, on_error=on_error, num_workers=workers)
            with pytest.warns(UserWarning, match="2 samples could not be made"):
                batches = list(loader)
            assert torch.cat([batch[1] for batch in batches]).tolist() == labels
            assert same(batches, list(loader.reference()))


def test_layout_and_dtype() -> None:
    loader = DataLoader(photos(), None, memory_format=torch.channels_last, dtype=torch.float16)
    for (image, label), (expected, _) in zip(loader, TorchDataLoader(photos(), None), strict=True):
        assert torch.equal(image, expected.half()) and image.stride() == (1, 3 * image.shape[2], 3)
        assert image.shape[1:] == SIZES[label][::-1]
    (batch, _), *_ = DataLoader(photos(), 1, memory_format=torch.channels_last)
    assert batch.is_contiguous(memory_format=torch.channels_last)


def test_each_image_has_memory_of_its_own_which_is_used_again() -> None:
    loader = DataLoader(photos(T.Compose([T.Resize(16), *TENSOR])), 1, num_workers=1, persistent_workers=True)
    for _ in range(3):
        for image, _ in loader:
            assert image.untyped_storage().nbytes() == image.nbytes
            del image
    assert loader._engine is not None and loader._engine.slots < 2 * len(SIZES)
    kept = [image for image, _ in loader]
    assert same(kept, [image for image, _ in loader.reference()])


def test_on_a_device_batches_are_copied_there() -> None:
    loader = DataLoader(photos(), 1, device="emulated")
    assert loader.native and same(list(loader), list(TorchDataLoader(photos(), 1)))


def test_batches_that_are_stacked_need_one_size() -> None:
    for options in ({"batch_size": 2}, {"batch_sampler": [[0], [1]]}):
        loader = DataLoader(photos(), **options)
        assert not loader.native and "sizes vary" in str(loader.explain())
    loader = DataLoader(photos(), 3, collate_fn=listed)
    assert loader.native
    loader.collate_fn = default_collate
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(loader)
    assert not loader.native


def test_images_of_one_size_are_views_of_one_batch() -> None:
    loader = DataLoader(
        EncodedImages(pictures(4), range(4), T.Compose([T.Resize((8, 8)), *TENSOR])), 2, collate_fn=listed
    )
    (images, _), *_ = loader
    assert images[0].untyped_storage().data_ptr() == images[1].untyped_storage().data_ptr()
