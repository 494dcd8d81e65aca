"""Subset, random_split and ConcatDataset of native datasets are native in any nesting, with the batches of torch."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, random_split
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages, ImageArray, ImageFolder
from headrace import transforms as T
from headrace.datasets.sources.dataset import BlobDataset
from support import TENSOR, assert_same, blobs, pictures, train, write_folder

FIXED = T.Compose([T.Resize((12, 10)), *TENSOR])
IMAGES = np.random.default_rng(5).integers(0, 256, (9, 14, 11, 3), dtype=np.uint8)


def twice(label: Any) -> Any:
    return label * 2


def some() -> dict[str, Any]:
    """Combinations by name, all with a deterministic transform."""
    pictures_, arrays = blobs(10, FIXED), ImageArray(IMAGES, range(100, 109), FIXED)
    doubled = EncodedImages(pictures(4), [7, 8, 9, 10], FIXED, twice)
    joined: ConcatDataset[Any] = ConcatDataset([pictures_, arrays, doubled])
    split = random_split(pictures_, [7, 3], generator=torch.Generator().manual_seed(1))
    return {
        "a subset": Subset(pictures_, [3, 1, 1, 9]),
        "from the end": Subset(pictures_, [-1, 0, -10]),
        "a range": Subset(arrays, range(2, 9, 3)),
        "an array": Subset(arrays, np.array([5, 2], dtype=np.uint8)),  # type: ignore[arg-type]
        "a tensor": Subset(arrays, torch.tensor([5, 2])),  # type: ignore[arg-type]
        "nested": Subset(Subset(Subset(pictures_, range(9)), [8, 2, 5]), [2, 0]),
        "a split": split[0],
        "the rest": split[1],
        "joined": joined,
        "joined with itself": ConcatDataset([arrays, arrays]),
        "a subset of joined": Subset(joined, [22, 0, 10, 9, 18, 19]),
        "joined subsets": ConcatDataset([Subset(pictures_, [1]), Subset(arrays, []), Subset(doubled, [3, 0])]),
        "floats": ConcatDataset(
            [EncodedImages(pictures(3), [0.5, 1.5, 2.5], FIXED), EncodedImages(pictures(2), [3.5, 4.5], FIXED)]
        ),
        "dicts": Subset(EncodedImages(pictures(3), [{"a": i, "b": "x"} for i in range(3)], FIXED), [2, 1]),
        "without labels": ConcatDataset([EncodedImages(pictures(3), None, FIXED), ImageArray(IMAGES, None, FIXED)]),
    }


@pytest.mark.parametrize("name", some())
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_torchs(name: str, workers: int) -> None:
    dataset = some()[name]
    loaders: list[Any] = [
        kind(dataset, 3, True, generator=torch.Generator().manual_seed(4), num_workers=count)
        for kind, count in ((DataLoader, workers), (TorchDataLoader, 0))
    ]
    assert loaders[0].native, loaders[0].explain()
    ours, theirs = (list(loader) for loader in loaders)
    assert len(ours) == len(theirs) == len(loaders[0]) > 0
    for a, b in zip(ours, theirs, strict=True):
        (images, *labels), (wanted, *targets) = ([one] if isinstance(one, torch.Tensor) else one for one in (a, b))
        assert type(a) is type(b) and torch.equal(images, wanted) and repr(labels) == repr(targets)


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("name", ["nested", "a subset of joined", "joined subsets"])
def test_random_batches_are_the_oracles(name: str, device: str | None) -> None:
    dataset = some()[name]
    shared = train(8)
    for one in leaves(dataset):
        one.transform = shared
    loader = DataLoader(dataset, 2, True, seed=3, num_workers=1, device=device)
    assert loader.native
    assert_same(loader, list(loader.reference()))
    assert loader.verify().samples == len(dataset)


def leaves(dataset: Any) -> list[Any]:
    if isinstance(dataset, Subset):
        return leaves(dataset.dataset)
    if isinstance(dataset, ConcatDataset):
        return [leaf for part in dataset.datasets for leaf in leaves(part)]
    return [dataset]


def test_draws_follow_the_subsets_own_index() -> None:
    whole, part = DataLoader(blobs(6, train(8)), 6, seed=2), DataLoader(Subset(blobs(6, train(8)), [5, 0]), 2, seed=2)
    (images, _), (some_images, labels) = next(iter(whole)), next(iter(part))
    assert labels.tolist() == [5, 0]
    assert not torch.equal(some_images[0], images[5]) and not torch.equal(some_images[1], images[0])


def test_equal_transforms_need_not_be_one_object() -> None:
    parts = [blobs(4, train(8)), blobs(4, train(8))]
    assert DataLoader(ConcatDataset(parts)).native
    parts[1].transform = train(9)
    loader: DataLoader = DataLoader(ConcatDataset(parts))
    assert not loader.native
    why = "make torch.float32 (3, 8, 8) and torch.float32 (3, 9, 9); give all of them outputs of one size"
    assert why in str(loader.explain())


def test_a_transform_exchanged_in_one_part_is_seen() -> None:
    parts = [blobs(4, FIXED), blobs(4, FIXED)]
    loader: DataLoader = DataLoader(ConcatDataset(parts), 8)
    parts[0].transform = parts[1].transform = train(6)
    assert next(iter(loader))[0].shape == (8, 3, 6, 6)
    parts[1].transform = train(7)
    assert "make torch.float32 (3, 6, 6) and torch.float32 (3, 7, 7)" in str(loader.explain()) and not loader.native
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(loader)


def test_an_exchanged_list_of_indices_is_seen() -> None:
    subset = Subset(blobs(8, FIXED), [1, 2])
    loader = DataLoader(subset, 2)
    assert next(iter(loader))[1].tolist() == [1, 2]
    subset.indices = [5, 7]
    assert next(iter(loader))[1].tolist() == [5, 7]
    subset.indices = [5, 7, 1]
    assert [labels.tolist() for _, labels in loader] == [[5, 7], [1]] and loader.native


def test_locations_are_those_of_the_files(tmp_path: Path) -> None:
    folder = ImageFolder(write_folder(tmp_path), FIXED)
    loader: DataLoader = DataLoader(ConcatDataset([ImageArray(IMAGES, range(9), FIXED), Subset(folder, [5])]), 10)
    assert isinstance(loader._source, BlobDataset)
    assert loader._source.location(9) == folder.location(5) and "array" in loader._source.location(8)
    (tmp_path / "class_0" / "0015.jpg").unlink()
    subset = Subset(folder, [folder.paths.index(str(tmp_path / "class_0" / "0015.jpg"))])
    with pytest.raises(FileNotFoundError, match=r"read: sample 0 \(.*class_0/0015.jpg\)"):
        next(iter(DataLoader(subset)))


def test_policies_hold() -> None:
    data = Subset(EncodedImages([pictures(1)[0], b"no image", pictures(2)[1]], [0, 1, 2], FIXED), [2, 1, 0])
    with pytest.warns(UserWarning, match="1 samples could not be made and were skipped"):
        assert [labels.tolist() for _, labels in DataLoader(data, 3, on_error="skip")] == [[2, 0]]
    with pytest.warns(UserWarning, match="replaced by their neighbours"):
        assert [labels.tolist() for _, labels in DataLoader(data, 3, on_error="replace")] == [[2, 0, 0]]


class Relabelled(Subset[Any]):
    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index)[0], "x"

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[i] for i in indices]


class Foreign(Dataset[Any]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        return index


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Relabelled(blobs(4, FIXED), [0, 1]), "Relabelled overrides __getitem__"),
        (lambda: Subset(Foreign(), [0, 1]), "does not know test_combined.Foreign"),
        (lambda: ConcatDataset([Foreign(), Foreign()]), "does not know test_combined.Foreign"),
        (
            lambda: ConcatDataset([blobs(2, FIXED), TensorDataset(torch.zeros(2, 3))]),
            "does not know torch.utils.data.dataset.TensorDataset",
        ),
        (
            lambda: ConcatDataset([blobs(2, FIXED), EncodedImages(pictures(2), None, FIXED)]),
            "have labels and others have none",
        ),
        (lambda: Subset(blobs(4, FIXED), [4]), "names index 4 of a dataset of 4 samples"),
        (lambda: Subset(blobs(4, FIXED), ["0"]), "indices are not whole numbers"),  # type: ignore[list-item]
    ],
)
def test_anything_else_is_torchs(make: Callable[..., Any], words: str) -> None:
    loader, theirs = DataLoader(make(), 1), TorchDataLoader(make(), 1)
    assert not loader.native and words in str(loader.explain())
    for a, b in zip(attempts(loader), attempts(theirs), strict=True):
        assert repr(a) == repr(b)


def attempts(loader: Any) -> list[Any]:
    """The batches, followed by the exception if one was raised."""
    batches: list[Any] = []
    try:
        batches.extend(iter(loader))
    except Exception as error:
        batches.append(error)
    return batches


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("name", ["a subset of joined", "nested", "an array"])
def test_copies_of_loaders(name: str, duplicate: Callable[..., Any]) -> None:
    loader = DataLoader(some()[name], 2, True, seed=1, num_workers=1)
    again = duplicate(loader)
    assert again.native and again._source.is_current()
    recipe = again.recipe()
    assert_same(again, list(loader))
    assert again.recipe() is recipe  # the copy sees no change


def test_an_array_is_pickled_once() -> None:
    data = ImageArray(np.zeros((4, 500, 500, 3), dtype=np.uint8), None, FIXED)
    assert len(pickle.dumps(data)) < 3_100_000
    assert pickle.loads(pickle.dumps(data))[3].shape == (3, 12, 10)
