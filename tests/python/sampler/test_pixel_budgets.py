"""Batches by a budget of pixels: every sample once, little padding, resumed, and shared out evenly."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace
from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace.sampler import AspectRatioBatchSampler, PixelBudgetBatchSampler
from support import TENSOR, assert_same, pictures

RANDOM = np.random.default_rng(5)
#: (height, width) like those of photographs of several cameras, and of crops of any shape.
SIZES: dict[str, Any] = {
    "photographs": np.array([(333, 500), (375, 500), (500, 375), (500, 500), (768, 1024)])[RANDOM.integers(0, 5, 6000)],
    "any": np.exp(RANDOM.normal(6, 0.4, (6000, 2))).astype(np.int64),
}
BUDGET = 8_000_000


def padded(sizes: Any, batch: Any, multiple: int = 1) -> int:
    rounded = -(-sizes[batch] // multiple) * multiple
    return int(len(batch) * rounded[:, 0].max() * rounded[:, 1].max())


@pytest.mark.parametrize("multiple", [1, 32])
@pytest.mark.parametrize("name", SIZES)
def test_batches_are_full_and_little_is_padded(name: str, multiple: int) -> None:
    sizes = SIZES[name]
    sampler = PixelBudgetBatchSampler(range(6000), BUDGET, multiple=multiple, seed=3, image_sizes=sizes)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        batches = list(sampler)
        assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(6000)) and len(batches) == len(sampler)
        filled = np.array([padded(sizes, one, multiple) for one in batches])
        assert filled.max() <= BUDGET
        share = 1 - sizes.prod(axis=1).sum() / filled.sum()
        assert sampler.padded_share() == pytest.approx(share)
        naive = [list(range(at, min(at + 10, 6000))) for at in range(0, 6000, 10)]  # batches without a sorting
        unsorted = 1 - sizes.prod(axis=1).sum() / sum(padded(sizes, one, multiple) for one in naive)
        assert share < min(0.35 * unsorted, 0.2), (share, unsorted)
        assert np.median(filled) > 0.9 * BUDGET


def test_options() -> None:
    sizes = SIZES["any"]

    def made(**options: Any) -> PixelBudgetBatchSampler:
        return PixelBudgetBatchSampler(range(len(sizes)), BUDGET, image_sizes=sizes, **options)

    assert max(map(len, made(batch_size=7))) == 7 and max(map(len, made())) > 20
    assert len(made(drop_last=True)) == len(made()) - 1
    one = made(seed=2)
    first = list(one)
    one.set_epoch(1)
    assert list(one) != first != list(made(seed=3)) and list(made(seed=2).iter_from(4)) == first[4:]
    still = made(shuffle=False, window=64)
    before = list(still)
    still.set_epoch(3)
    assert list(still) == before and max(map(max, before[:4])) < 128


def test_the_rest_is_not_always_of_the_same_images() -> None:
    sizes = SIZES["any"]
    dropped = set[int]()
    sampler = PixelBudgetBatchSampler(range(6000), BUDGET, image_sizes=sizes, drop_last=True)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        dropped |= set(range(6000)) - set(chain.from_iterable(sampler))
    ratios = np.log2(sizes[sorted(dropped), 0] / sizes[sorted(dropped), 1])
    assert len(dropped) > 30 and ratios.std() > 0.3


def test_wrong_arguments() -> None:
    def made(sizes: Any, budget: Any = 100, **options: Any) -> object:
        return PixelBudgetBatchSampler(range(len(sizes)), budget, image_sizes=sizes, **options)

    with pytest.raises(ValueError, match=r"sample 1 has 20 x 10 pixels, more than max_pixels=100: .* the 1 images"):
        made([(10, 10), (20, 10)])
    with pytest.raises(ValueError, match=r"sample 0 has 32 x 32 pixels"):
        made([(10, 10)], multiple=32)
    with pytest.raises(ValueError, match="the dataset is empty"):
        made(np.empty((0, 2), np.int64))
    with pytest.raises(ValueError, match="negative"):
        made([(-1, 10)])
    with pytest.raises(ValueError, match=r"image_sizes are .*; \(height, width\) as integers"):
        made([1, 2])
    with pytest.raises(ValueError, match="max_pixels must be 1 or more"):
        made([(1, 1)], 0)
    with pytest.raises(ValueError, match="give the sizes of its images as image_sizes="):
        PixelBudgetBatchSampler([1, 2], 100)
    assert list(PixelBudgetBatchSampler([1, 2], 4, image_sizes=[(0, 0), (2, 2)], shuffle=False)) == [[0], [1]]


COUNT = 40


def images() -> EncodedImages:
    return EncodedImages(pictures(COUNT), range(COUNT), T.Compose(TENSOR))


def pad(samples: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    height, width = (max(image.shape[axis] for image, _ in samples) for axis in (1, 2))
    batch = torch.zeros(len(samples), 3, height, width)
    for row, (image, _) in zip(batch, samples, strict=True):
        row[:, : image.shape[1], : image.shape[2]] = image
    return batch, torch.tensor([label for _, label in samples])


def loader(**options: Any) -> Any:
    sampler = PixelBudgetBatchSampler(images(), 200_000, seed=5)
    made: Any = DataLoader(images(), batch_sampler=sampler, collate_fn=pad, **{"num_workers": 2} | options)
    assert made.native, made.explain()
    return made


def test_a_loader_reads_the_headers_and_goes_on() -> None:
    whole = list(loader())
    assert all(batch[0].numel() <= 3 * 200_000 for batch in whole) and len({len(labels) for _, labels in whole}) > 1
    assert sorted(chain.from_iterable(labels.tolist() for _, labels in whole)) == list(range(COUNT))
    first = loader()
    iterator = iter(first)
    begun = [next(iterator) for _ in range(2)]
    again = loader(num_workers=0)
    again.load_state_dict(first.state_dict())
    assert_same([*begun, *again], whole)


def test_ranks_get_equally_many_batches_of_one_order() -> None:
    shares = [list(loader(rank=rank, world_size=3)) for rank in range(3)]
    assert len({len(one) for one in shares}) == 1
    seen = [label for one in shares for _, labels in one for label in labels.tolist()]
    assert set(seen) == set(range(COUNT))


def test_sizes_of_several_areas_have_batches_of_several_lengths() -> None:
    sizes = [(32, 32), (32, 64), (64, 64)]
    data = EncodedImages(
        tuple(encoded(*sizes[i % 3]) for i in range(60)),
        range(60),
        T.ByAspectRatio({size: T.Compose([T.Resize(size), *TENSOR]) for size in [(32, 32), (32, 64)]}),
    )
    sampler = AspectRatioBatchSampler(data, max_pixels=8 * 32 * 32, seed=1)
    made: headrace.DataLoader[Any] = DataLoader(data, batch_sampler=sampler, num_workers=1)
    batches = list(made)
    assert made.native and len(batches) == len(sampler) == 5 + 5
    assert {tuple(batch.shape) for batch, _ in batches} == {(8, 3, 32, 32), (4, 3, 32, 64)}
    assert max(map(len, AspectRatioBatchSampler(data, 6, max_pixels=8 * 32 * 32))) == 6
    assert len(AspectRatioBatchSampler(data, max_pixels=1)) == 60
    with pytest.raises(ValueError, match="give batch_size, max_pixels, or both"):
        AspectRatioBatchSampler(data)


def encoded(height: int, width: int) -> bytes:
    from io import BytesIO

    out = BytesIO()
    Image.new("RGB", (width, height), (height, width, 7)).save(out, "PNG")
    return out.getvalue()
