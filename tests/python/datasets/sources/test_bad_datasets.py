"""Bad datasets and labels: one clear sentence each, of the type that torch would raise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages, ImageArray, ImageFiles
from headrace import transforms as T
from support import TENSOR, pictures

FIXED = T.Compose([T.Resize((4, 4)), *TENSOR])
IMAGES = np.zeros((4, 4, 4, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            [torch.zeros(2), torch.zeros(2), torch.zeros(3), torch.zeros(2)],
            r"the labels of sample 0 \(blob 0 in memory, .* bytes\) and sample 2 \(blob 2 .*\) do not stack: "
            r"Tensor \(2,\) and Tensor \(3,\); give all samples labels of one kind and shape",
        ),
        (
            [np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((1, 2)), np.zeros((1, 2))],
            r"sample 0 .* and sample 1 .* do not stack: ndarray \(1, 2\) and ndarray \(2, 2\)",
        ),
        ([[1], [1, 2], [1], [1]], "do not stack: list of 1 and list of 2"),
        ([{"a": 1}, {"a": 2}, {"b": 1}, {"a": 1}], "do not stack: dict with the keys 'a' and dict with the keys 'b'"),
        ([1.5, 2.5, "x", 3.5], "sample 0 .* and sample 2 .* do not stack: float 1.5 and str 'x'"),
        ([{1}, {2}, {3}, {4}], r"the label of sample 0 .* is set \{1\}, which default_collate cannot batch: "),
        ([1.5, None, 2.5, 3.5], "the label of sample 1 .* is NoneType None, which default_collate cannot batch"),
        ([object()] * 4, "the label of sample 0 .* is object <object object .*, which default_collate cannot batch"),
    ],
)
def test_labels_that_make_no_batch_are_named(labels: list[Any], words: str) -> None:
    data = EncodedImages(pictures(4), labels, FIXED)
    loader = DataLoader(data, 4)
    assert loader.native
    with pytest.raises(Exception) as theirs:
        next(iter(TorchDataLoader(data, 4)))
    with pytest.raises(type(theirs.value), match=words) as ours:
        next(iter(loader))
    assert "\n" not in str(ours.value)
    assert type(ours.value.__cause__) is type(theirs.value)


def test_batches_behind_such_labels_can_be_had() -> None:
    iterator = iter(DataLoader(EncodedImages(pictures(4), [[1], [1, 2], [3], [4]], FIXED), 2, num_workers=1))
    with pytest.raises(RuntimeError, match="do not stack"):
        next(iterator)
    assert next(iterator)[1][0].tolist() == [3, 4]


def test_what_target_transform_raises_is_raised() -> None:
    def refuse(label: int) -> int:
        raise LookupError(f"no class {label}")

    with pytest.raises(LookupError, match="no class 0"):
        next(iter(DataLoader(EncodedImages(pictures(1), [0], FIXED, refuse))))


def test_labels_may_be_unhashable() -> None:
    labels = [np.array([1, 2]), np.array([3, 4])]
    assert next(iter(DataLoader(EncodedImages(pictures(2), labels, FIXED), 2)))[1].tolist() == [[1, 2], [3, 4]]


class Long(EncodedImages):
    def __len__(self) -> int:
        return 30


class LongArrays(ImageArray):
    def __len__(self) -> int:
        return 30


def test_a_dataset_that_says_a_length_it_has_not() -> None:
    for data, words in (
        (Long(pictures(24), None, FIXED), r"Long says that it has 30 samples, but its blob_table\(\) has 24"),
        (LongArrays(IMAGES, None, FIXED), r"LongArrays says that it has 30 samples, but its blob_table\(\) has 4"),
    ):
        loader = DataLoader(data, 8)
        for call in (lambda one: iter(one), lambda one: one.verify()):
            with pytest.raises(ValueError, match=words):
                call(loader)


def test_a_foreign_dataset_that_says_a_length_it_has_not() -> None:
    class Foreign(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> int:
            return [1, 2, 3][index]

    for loader in (DataLoader(Foreign(), 2), TorchDataLoader(Foreign(), 2)):
        with pytest.raises(IndexError, match="list index out of range"):
            list(loader)


def test_a_missing_file_is_named_and_the_index_is_the_loaders() -> None:
    data = torch.utils.data.Subset(ImageFiles(["/none/a.jpg", "/none/b.jpg"], None, FIXED), [1])
    with pytest.raises(FileNotFoundError, match=r"^read: sample 0 \(/none/b.jpg\): No such file"):
        next(iter(DataLoader(data)))


@pytest.mark.parametrize("dataset", [7, None, object()], ids=lambda one: type(one).__name__)
def test_what_is_no_dataset_fails_as_in_torch(dataset: Any) -> None:
    for kind in (DataLoader, TorchDataLoader):
        with pytest.raises(TypeError, match=r"has no len\(\)"):
            next(iter(kind(dataset)))
