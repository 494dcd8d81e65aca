"""Whatever a sampler yields as index or as batch, every source gives what it gives in torch's loader."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, StackDataset
from torch.utils.data import DataLoader as TorchDataLoader

sys.path.append(str(Path(__file__).parents[2] / "datasets/sources"))
import changing

from headrace import DataLoader
from support import same

pytestmark = pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")

PAIRS: Any = np.arange(16.0).reshape(8, 2)  # no Datasets by their types
NUMBERS: Any = torch.arange(8)
SOURCES = {
    name: getattr(changing, name)
    for name in ("folder", "cifar", "mnist", "arrays", "blobs", "columns", "samples", "stack", "subset", "concat")
} | {
    "arrays of labels": lambda root: changing.cifar(root, np.arange(8, dtype=np.int32)),
    "stacked arrays": lambda root: StackDataset(PAIRS, NUMBERS),
    "subset of an array": lambda root: changing.subset(root, np.array([1, 5, 2, 6])),
    "subset of a tensor": lambda root: changing.subset(root, torch.tensor([1, 5, 2, 6])),
    "nested": changing.nested,
}


class Number(enum.IntEnum):
    TWO = 2


class Indexable:
    def __index__(self) -> int:
        return 2


INDICES: dict[str, Any] = {
    "ints": [0, 3],
    "ints from the end": [-1, -4],
    "a bool": [1, True],
    "False": False,
    "an int of numpy": np.int64(2),
    **{f"{kind.__name__} of numpy": kind(2) for kind in (np.int8, np.uint8, np.int16, np.uint32, np.uint64, np.bool_)},
    "a negative int8": np.int8(-1),
    "a tensor": torch.tensor(2),
    **{
        f"a tensor of {kind}": torch.tensor(1, dtype=kind)
        for kind in (torch.int32, torch.int16, torch.uint8, torch.bool)
    },
    "a tensor of one": torch.tensor([2]),
    "a tensor from the end": torch.tensor(-2),
    "an array": np.array(2),
    "an array of one": np.array([2]),
    "an array of several": np.array([2, 0, 1]),
    "a tensor of several": torch.tensor([2, 0, 1]),
    "a mask": np.array([True, False] * 4),
    "a float": 2.0,
    "a float of numpy": np.float32(2),
    "a string": "1",
    "a tuple": (1,),
    "a tuple of two": (1, 2),
    "a list": [1],
    "a slice": slice(0, 2),
    "None": None,
    "an enum": Number.TWO,
    "an object": Indexable(),
    "a long int": 10**30,
    "beyond": 99,
    "far before": -99,
    "a range": range(2),
    "a set": {2, 1},
    "nothing": [],
}


def batches(kind: Any, data: Any, **options: Any) -> list[Any]:
    """What a loader yields, with the names of the exceptions that it raises instead of batches."""
    got: list[Any] = []
    iterator = iter(kind(data, **options))
    for _ in range(6):
        try:
            got.append(next(iterator))
        except Exception as error:
            got.append(type(error).__name__)
    return got


def assert_torchs(make: Any, root: Path, **options: Any) -> None:
    data = make(root)
    theirs, ours = (batches(kind, data, **options) for kind in (TorchDataLoader, DataLoader))
    assert same(theirs, ours), f"torch: {changing.short(theirs)}\nheadrace: {changing.short(ours)}"


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("source", SOURCES)
def test_every_index_means_what_it_means_to_torch(source: str, index: str, tmp_path: Path) -> None:
    given = INDICES[index]
    each = given if isinstance(given, list) and given and not isinstance(given[0], list) else [given]
    make, items = SOURCES[source], [0, *each, 1]
    assert_torchs(make, tmp_path, sampler=items, batch_size=None)
    assert_torchs(make, tmp_path, sampler=[given], batch_size=None)
    assert_torchs(make, tmp_path, sampler=[*items, 0], batch_size=2)
    assert_torchs(make, tmp_path, batch_sampler=[[0, 1], [0, *each], given, [1]])


@pytest.mark.processes
@pytest.mark.parametrize("source", ["folder", "cifar", "columns", "stacked arrays", "subset"])
@pytest.mark.parametrize(
    "index", ["an array of several", "a tensor of several", "a slice", "a bool", "a list", "nothing"]
)
def test_indices_with_workers(source: str, index: str, tmp_path: Path) -> None:
    make, given = SOURCES[source], INDICES[index]
    assert_torchs(make, tmp_path, sampler=[0, given, 1], batch_size=None, num_workers=1)
    assert_torchs(make, tmp_path, batch_sampler=[[0, 1], given, [1]], num_workers=1)


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.processes)])
def test_lists_of_indices_with_a_dataset_that_takes_them(workers: int) -> None:
    fields: dict[str, Any] = {"x": np.arange(24.0).reshape(12, 2), "y": torch.arange(12)}
    data = StackDataset(**fields)
    sampler = BatchSampler(range(12), 5, False)
    assert_torchs(lambda root: data, Path(), sampler=sampler, batch_size=None, num_workers=workers)


def test_batches_that_are_given_once(tmp_path: Path) -> None:
    data = changing.folder(tmp_path)
    for batch in (lambda: iter([2, 1]), lambda: (i for i in (3, 0)), lambda: {5: 1, 6: 1}, lambda: map(int, "12")):
        theirs, ours = (batches(kind, data, batch_sampler=[batch()]) for kind in (TorchDataLoader, DataLoader))
        assert same(theirs, ours)


@pytest.mark.parametrize("error", [NotImplementedError, RuntimeError, TypeError])
@pytest.mark.parametrize("source", ["folder", "cifar", "mnist", "blobs", "subset", "concat", "samples", "stack"])
def test_a_length_that_raises_is_not_needed_with_a_sampler(source: str, error: type, tmp_path: Path) -> None:
    data = SOURCES[source](tmp_path)

    def refuse(self: Any) -> int:
        raise error("no length")

    data.__class__ = type("Unsized", (type(data),), {"__len__": refuse})
    theirs, ours = (batches(kind, data, sampler=[2, 0, 1], batch_size=2) for kind in (TorchDataLoader, DataLoader))
    assert same(theirs, ours) and isinstance(theirs[0], str) == (
        source in ("blobs", "samples")
    )  # whose samples ask for it
    theirs, ours = (batches(kind, data, batch_sampler=[[2, 0], [1]]) for kind in (TorchDataLoader, DataLoader))
    assert same(theirs, ours)
