"""The method headrace_source makes a dataset native: its batches equal torch's, for labels of any kind."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from headrace import DataLoader, EncodedImages, VerificationError
from headrace import transforms as T
from headrace._recipe.arithmetic.functional_pil import open_rgb
from support import TENSOR, assert_same, pictures, same, train

FIXED = T.Compose([T.Resize((9, 11)), *TENSOR])
Point = namedtuple("Point", "x y")


class Own(Dataset[Any]):
    def __init__(self, labels: Any = None, transform: Any = FIXED) -> None:
        self.pictures = pictures(8)
        self.labels, self.transform = list(range(8)) if labels is None else labels, transform
        self.asked = 0

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        return self.transform(open_rgb(self.pictures[index])), self.labels[index]

    def headrace_source(self) -> Any:
        self.asked += 1
        return EncodedImages(self.pictures, self.labels, self.transform)


LABELS: dict[str, list[Any]] = {
    "ints": list(range(8)),
    "floats": [i / 3 for i in range(8)],
    "words": [str(i) for i in range(8)],
    "bytes": [bytes([i]) for i in range(8)],
    "arrays": [np.arange(3) * i for i in range(8)],
    "scalars of numpy": [np.float32(i) for i in range(8)],
    "tensors": [torch.arange(4) + i for i in range(8)],
    "dicts": [{"id": i, "boxes": torch.ones(2, 4) * i, "name": f"n{i}"} for i in range(8)],
    "tuples": [(i, float(i), "a") for i in range(8)],
    "lists": [[i, i + 1] for i in range(8)],
    "named tuples": [Point(i, [i]) for i in range(8)],
    "nested": [{"a": [(i, {"b": np.eye(2) * i})], "c": ("x", [True, None][:1])} for i in range(8)],
}


@pytest.mark.parametrize("batch_size", [3, None])
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_batches_are_torchs(labels: list[Any], batch_size: int | None) -> None:
    ours, theirs = DataLoader(Own(labels), batch_size, num_workers=1), TorchDataLoader(Own(labels), batch_size)
    assert ours.native
    batches = list(zip(ours, theirs, strict=True))
    assert len(batches) == len(ours)
    for a, b in batches:
        assert same(list(a), list(b))


def test_it_can_be_a_part_of_others() -> None:
    dataset: ConcatDataset[Any] = ConcatDataset([Subset(Own(), [7, 1]), Own()])
    loader = DataLoader(dataset, 5, seed=1)
    assert loader.native
    assert_same(loader, TorchDataLoader(dataset, 5))


def test_draws_order_and_state_are_those_of_its_source() -> None:
    own = Own(transform=train(8))
    ours, source = (DataLoader(one, 3, True, seed=4) for one in (own, own.headrace_source()))
    assert_same(ours, list(source))
    assert ours.state_dict().keys() == source.state_dict().keys()
    assert "EncodedImages" in str(ours.explain()) and "Own" in str(ours.explain())


def test_it_is_asked_once_unless_its_transform_is_another() -> None:
    own = Own()
    loader = DataLoader(own, 8)
    assert_same(loader, list(loader))
    assert own.asked == 1
    own.transform = T.Compose([T.Resize((4, 4)), *TENSOR])
    assert next(iter(loader))[0].shape == (8, 3, 4, 4) and own.asked == 2


def test_a_subclass_with_samples_of_its_own_is_torchs_until_it_says_so() -> None:
    class Doubled(Own):
        def __getitem__(self, index: int) -> Any:
            image, label = super().__getitem__(index)
            return image, 2 * label

    class Again(Doubled):
        def headrace_source(self) -> Any:
            return EncodedImages(self.pictures, [2 * label for label in self.labels], self.transform)

    loader = DataLoader(Doubled(), 8)
    assert not loader.native and "Doubled overrides __getitem__, which" in str(loader.explain())
    assert "override headrace_source with it" in str(loader.explain())
    assert DataLoader(Again(), 8).native
    assert_same(DataLoader(Again(), 8), loader)


class Wrapper(Dataset[Any]):
    """Forwards all other attributes, as wrappers do."""

    def __init__(self, inner: Own) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        return -self.inner[index][0], index

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)


class Stream(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(3))

    def headrace_source(self) -> Any:
        raise AssertionError


@pytest.mark.parametrize("dataset", [Wrapper(Own()), Stream()], ids=["a wrapper", "a stream"])
def test_what_only_looks_like_it_is_torchs(dataset: Wrapper | Stream) -> None:
    loader = DataLoader(dataset, 3)
    assert not loader.native
    assert all(same(a, b) for a, b in zip(loader, TorchDataLoader(dataset, 3), strict=True))


class Odd(Own):
    source: Any = None

    def headrace_source(self) -> Any:
        return self.source


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ([1, 2], TypeError, r"Odd.headrace_source\(\) must return one of headrace's datasets \(.*\), not list"),
        (None, TypeError, "headrace's datasets .*, not NoneType"),
        (
            EncodedImages(pictures(7), None, FIXED),
            ValueError,
            r"Odd has 8 samples, but its headrace_source\(\) has 7; both must",
        ),
    ],
)
def test_a_wrong_source_is_one_sentence(source: list[Any] | EncodedImages | None, error: type, words: str) -> None:
    own = Odd()
    own.source = source
    with pytest.raises(error, match=words) as raised:
        DataLoader(own)
    assert "\n" not in str(raised.value)


def test_what_the_method_raises_is_raised() -> None:
    class Broken(Own):
        def headrace_source(self) -> Any:
            raise KeyError("no such split")

    with pytest.raises(KeyError, match="no such split"):
        DataLoader(Broken())


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    own = Odd()
    (tmp_path / "a.jpg").write_bytes(pictures(1)[0])
    own.source = headrace.ImageFiles([tmp_path / "a.jpg"] * 7 + [tmp_path / "none.jpg"], None, FIXED)
    loader = DataLoader(own, 4)
    with pytest.raises(
        FileNotFoundError, match=r"^read: sample 7 \(.*none.jpg\): No such file or directory; on_error="
    ):
        list(loader)


def test_a_source_that_changes_what_is_not_called_is_torchs() -> None:
    class Decrypted(EncodedImages):
        def read(self, index: int) -> bytes:
            return super().read(index)[::-1]

    own = Odd()
    own.source = Decrypted(pictures(8), None, FIXED)
    loader = DataLoader(own)
    assert not loader.native and "Decrypted overrides read" in str(loader.explain())


class ByArray(Dataset):
    """Opens its files in its own way, for example by a library that rotates by EXIF."""

    def __init__(self, turned: int, transform: Any) -> None:
        self.turned, self.transform = turned, transform

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        image = open_rgb(pictures(6)[index])
        return self.transform(image.rotate(180) if index == self.turned else image)

    def headrace_source(self) -> EncodedImages:
        return EncodedImages(pictures(6), None, self.transform)


def test_verify_opens_samples_as_the_dataset_does() -> None:
    right = DataLoader(ByArray(-1, train(16)), 3)
    assert "6 images as the dataset's own __getitem__ opens them compared" in str(right.verify(2))
    with pytest.raises(VerificationError, match=r"sample 4 \(blob 4.*own __getitem__ makes another image, uint8 \("):
        DataLoader(ByArray(4, train(16)), 3).verify(2)
    assert DataLoader(Subset(ByArray(4, train(16)), [0, 1]), 3).verify(2).own == 2
