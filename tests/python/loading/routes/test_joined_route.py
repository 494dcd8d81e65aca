"""Joined datasets with different transforms of one output: one engine, which chooses the recipe of each sample."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, Subset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, PerformanceWarning
from headrace import transforms as T
from headrace._base.errors import SampleError
from headrace.datasets import EncodedImages, ImageArray
from support import TENSOR, assert_same, blobs, evaluation, pictures, train, truncated

SMALL, LARGE = evaluation(20, 16), evaluation(30, 16)


def joined() -> Any:
    """A ConcatDataset of a ConcatDataset, of a subset, and of one whose transform equals an earlier one."""
    inner: Any = ConcatDataset([blobs(5, SMALL), blobs(4, LARGE)])
    return ConcatDataset([inner, Subset(blobs(9, LARGE), [8, 1, 1]), blobs(3, evaluation(20, 16))])


def shuffled(kind: Any, dataset: Any, workers: int, **options: Any) -> Any:
    generator = torch.Generator().manual_seed(1)
    return kind(dataset, 4, shuffle=True, num_workers=workers, generator=generator, **options)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_are_torchs(workers: int) -> None:
    ours = shuffled(DataLoader, joined(), workers)
    assert ours.native
    theirs = shuffled(TorchDataLoader, joined(), 0)
    for _ in range(2):
        assert assert_same(ours, list(theirs)) == 4
    assert ours.stats().threads == workers and ours.stats().stages[0].items == 15


@pytest.mark.parametrize("workers", [0, 2])
def test_random_batches_are_the_oracles(workers: int) -> None:
    dataset: Any = ConcatDataset(
        [blobs(9, train(16)), blobs(7, SMALL), blobs(6, T.Compose([T.RandomRotation(30), SMALL]))]
    )
    loader = DataLoader(dataset, 5, True, seed=2, num_workers=workers)
    assert loader.verify().samples == 20
    assert_same(loader, list(loader.reference()))
    single = DataLoader(dataset, None, True, seed=2, num_workers=workers)
    assert_same(single, list(single.reference()))


def test_parts_of_different_pixels() -> None:
    pixels = torch.arange(4 * 18 * 18 * 3, dtype=torch.uint8).view(4, 18, 18, 3).numpy()
    dataset: Any = ConcatDataset([ImageArray(pixels, [0, 1, 2, 3], transform=LARGE), blobs(4, SMALL)])
    ours = DataLoader(dataset, 8, num_workers=1)
    assert ours.native
    assert_same(ours, list(TorchDataLoader(dataset, 8)))


@pytest.mark.parametrize("workers", [0, 2])
def test_damaged_files(workers: int) -> None:
    """Of the second dataset; its last one is replaced by the first sample of the other recipe."""
    files = [*pictures(4)]
    files[1], files[3] = truncated(files[1]), truncated(files[3])
    dataset: Any = ConcatDataset([blobs(3, SMALL), EncodedImages(files, [3, 4, 5, 6], LARGE), blobs(2, SMALL)])
    with pytest.raises(SampleError, match="sample 4"):
        list(DataLoader(dataset, 9, num_workers=workers))
    for on_error, kept in (("skip", [0, 1, 2, 3, 5, 7, 8]), ("replace", [0, 1, 2, 3, 5, 5, 7, 7, 8])):
        loader = DataLoader(dataset, 9, num_workers=workers, on_error=on_error)  # type: ignore[arg-type]
        with pytest.warns(UserWarning, match="2 samples could not be made"):
            ((images, labels),) = loader
        assert torch.equal(images, torch.stack([dataset[n][0] for n in kept]))
        assert labels.tolist() == [dataset[n][1] for n in kept]
        assert [one.index for one in loader.errors] == [4, 6]


def test_engines_that_last_follow_which_dataset_has_which_transform() -> None:
    """Also where the transforms are the same objects as before, in the same order."""
    dataset: Any = ConcatDataset([blobs(3, SMALL), blobs(3, LARGE), blobs(3, SMALL)])
    loader: DataLoader[Any] = DataLoader(dataset, 9, num_workers=1, persistent_workers=True)
    ((images, _),) = loader
    engine = loader._engine
    ((again, _),) = loader
    assert loader._engine is engine and torch.equal(images, again)
    loader.close()
    dataset.datasets[2].transform = LARGE
    ((changed, _),) = loader
    assert torch.equal(changed[:6], images[:6]) and not torch.equal(changed[6:], images[6:])
    assert_same(loader, list(TorchDataLoader(dataset, 9)))


def test_a_transform_that_changes() -> None:
    dataset: Any = ConcatDataset([blobs(4, SMALL), blobs(4, LARGE)])
    loader: DataLoader[Any] = DataLoader(dataset, 8, num_workers=1, persistent_workers=False)
    for first, second in ((SMALL, LARGE), (SMALL, SMALL), (LARGE, SMALL), (train(16), SMALL)):
        dataset.datasets[0].transform, dataset.datasets[1].transform = first, second
        assert loader.native
        assert_same(loader, list(loader.reference()))
    dataset.datasets[0].transform = evaluation(20, 8)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(loader)
    assert not loader.native


@pytest.mark.parametrize(
    ("transform", "why"),
    [
        (evaluation(30, 12), r"make torch.float32 \(3, 16, 16\) and torch.float32 \(3, 12, 12\); give all"),
        (T.Compose([T.Resize((16, 16)), T.PILToTensor()]), "make torch.float32 .* and torch.uint8"),
        (T.Views([SMALL, SMALL]), "one makes several images"),
        (T.Compose([T.Resize(20), T.CenterCrop(16), lambda image: image, *TENSOR]), "one has steps that run in Python"),
        (T.Compose([T.PILToTensor()]), "images of different sizes|differ in size|sizes"),
    ],
)
def test_why_not(transform: Any, why: str) -> None:
    loader: Any = DataLoader(ConcatDataset([blobs(4, SMALL), blobs(4, transform)]), 4)
    assert not loader.native
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(str(loader.explain()))


def test_devices_and_helpers() -> None:
    loader = DataLoader(joined(), 4, num_workers=1, device="emulated")
    assert "whose batches are not made on a device" in str(loader.explain())
    loader = DataLoader(joined(), 4, num_workers=1, helpers=["127.0.0.1:1"])
    with pytest.warns(PerformanceWarning, match="no effect: the joined datasets have different transforms"):
        next(iter(loader))
    assert "of datasets 1, 4, in the same threads and batches" in str(loader.explain())


def test_the_state_names_all_recipes() -> None:
    loader = DataLoader(joined(), 4, True, seed=1)
    batches = list(loader)
    loader.set_epoch(0)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    again = DataLoader(joined(), 4, True, seed=1, num_workers=2)
    again.load_state_dict(state)
    assert_same(again, batches[1:])
    other: Any = joined()
    other.datasets[2].transform = train(16)
    with pytest.raises(ValueError, match="the transforms, the output size or the dtype differ"):
        DataLoader(other, 4, True, seed=1).load_state_dict(state)
