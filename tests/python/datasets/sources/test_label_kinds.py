"""Labels of every type, in every dataset: a batch has torch's type and dtype, which its first label decides."""

from __future__ import annotations

import enum
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import changing
import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, StackDataset, Subset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, Fields
from support import same

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"),
    pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy.ndarrays"),  # torch says it once
]

Pair = namedtuple("Pair", ["a", "b"])


class Kind(enum.IntEnum):
    ONE = 1
    TWO = 2


WIDTHS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
FLOATS = (np.float16, np.float32, np.float64, np.bool_, np.complex64)
LABELS: dict[str, Any] = {
    **{f"array of {one.__name__}": np.arange(8).astype(one) for one in (*WIDTHS, *FLOATS)},
    **{f"numbers of {one.__name__}": list(np.arange(8).astype(one)) for one in (*WIDTHS, *FLOATS)},
    **{f"tensor of {one}": torch.arange(8).to(one) for one in (torch.int64, torch.uint8, torch.float32, torch.bool)},
    **{f"0-d {one.__name__}": [np.array(i, one) for i in range(8)] for one in (np.int32, np.int64, np.float32)},
    "ints": [*range(8)],
    "negative ints": [-i for i in range(8)],
    "bools": [True, False] * 4,
    "floats": [0.5 * i for i in range(8)],
    "strings": list("abcdefgh"),
    "strings of numpy": list(np.array(list("abcdefgh"))),
    "bytes": [b"a"] * 8,
    "None": [None] * 8,
    "tensors": list(torch.arange(8)),
    "tensors of one": list(torch.arange(8).reshape(8, 1)),
    "rows": list(np.arange(16).reshape(8, 2)),
    "an array of rows": np.arange(16, dtype=np.int16).reshape(8, 2),
    "tuples": [(i, "x") for i in range(8)],
    "pairs": [Pair(i, 0.5) for i in range(8)],
    "lists": [[i, i] for i in range(8)],
    "dicts": [{"a": i} for i in range(8)],
    "enums": [Kind.ONE, Kind.TWO] * 4,
    "decimals": [Decimal(1)] * 8,
    "long ints": [2**40] * 8,
    "ints beyond 63 bits": [2**63 + i for i in range(8)],
    "ints beyond 64 bits": [2**70] * 8,
    "one int beyond 63 bits": [*range(7), 2**63],
    "ints, then a bool": [1, 2, 3, True, 5, 6, 7, False],
    "bools, then an int": [True, 2, False, True, 1, 0, True, 3],
    "ints, then a float": [1, 2, 3, 4.5, 5, 6, 7, 8],
    "floats, then an int": [1.5, 2, 3, 4, 5.5, 6, 7, 8],
    "ints, then an int32": [1, 2, 3, np.int32(4), 5, 6, 7, 8],
    "int32, then ints": [np.int32(1), 2, 3, 4, 5, 6, 7, 8],
    "int64, then int32": [np.int64(1), np.int32(2), 3, 4, np.int32(5), 6, np.int64(7), 8],
    "int64, then ints": [np.int64(1), 2, 3, 4, np.int64(5), 6, 7, 8],
    "ints, then an enum": [1, Kind.TWO, 3, 4, 5, 6, 7, 8],
    "ints, then None": [1, 2, 3, None, 5, 6, 7, 8],
    "ints, then a string": [1, 2, 3, "4", 5, 6, 7, 8],
    "objects": np.array([1, 2.5, "x", None, 5, 6, 7, 8], dtype=object),
    "ints in objects": np.array([1, 2, 3, 4, 5, 6, 7, 8], dtype=object),
    "big-endian": np.arange(8).astype(">i8"),
    "a range": range(8),
}
MAKES: dict[str, Callable[..., Any]] = {
    "folder": changing.folder,
    "cifar": changing.cifar,
    "mnist": changing.mnist,
    "ImageArray": changing.arrays,
    "EncodedImages": changing.blobs,
    "Subset": lambda root, labels: Subset(changing.folder(root, labels), [3, 1, 0, 7]),
    "Concat": lambda root, labels: ConcatDataset([changing.cifar(root), changing.folder(root, labels)]),
    "Fields": lambda root, labels: Fields({"image": changing.folder(root), "label": labels}),
    "Stack": lambda root, labels: StackDataset(changing.folder(root, labels), labels),
}
TRANSFORMS = {
    "": None,
    "as float": lambda y: float(y),
    "as int32": lambda y: np.int32(y),
    "as tensor": torch.as_tensor,
    "as text": str,
    "itself": lambda y: y,
}


def epoch(kind: Any, data: Any, **options: Any) -> list[Any]:
    got: list[Any] = []
    iterator = iter(kind(data, **options))
    for _ in range(9):
        try:
            got.append(next(iterator))
        except Exception as error:
            got.append(type(error).__name__)
    return got


@pytest.mark.parametrize(
    ("source", "labels"),
    [(one, other) for i, one in enumerate(MAKES) for j, other in enumerate(LABELS) if (i + j) % 2 == 0],
)
def test_labels_are_torchs(source: str, labels: str, tmp_path: Path) -> None:
    try:
        data = MAKES[source](tmp_path, LABELS[labels])
    except (TypeError, ValueError, OverflowError) as error:  # a range as one of the pairs, say
        pytest.skip(f"{source} refuses these labels: {error}")
    for batch_size in (3, 1, None):
        theirs, ours = (epoch(kind, data, batch_size=batch_size) for kind in (TorchDataLoader, DataLoader))
        assert same(theirs, ours), f"batch_size={batch_size}\n{changing.short(theirs)}\n{changing.short(ours)}"
    lists = {"batch_size": 4, "collate_fn": list}
    theirs, ours = (epoch(kind, data, **lists) for kind in (TorchDataLoader, DataLoader))
    assert same(theirs, ours)


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("labels", ["ints", "array of int16", "array of int64", "bools", "tensors", "floats"])
@pytest.mark.parametrize("source", ["folder", "cifar", "mnist", "ImageArray", "EncodedImages"])
def test_a_target_transform_gets_torchs_labels(source: str, labels: str, how: str, tmp_path: Path) -> None:
    data = MAKES[source](tmp_path, LABELS[labels])
    data.target_transform = TRANSFORMS[how]
    for batch_size in (3, None):
        theirs, ours = (epoch(kind, data, batch_size=batch_size) for kind in (TorchDataLoader, DataLoader))
        assert same(theirs, ours), f"batch_size={batch_size}\n{changing.short(theirs)}\n{changing.short(ours)}"


@pytest.mark.parametrize("source", ["folder", "cifar", "mnist", "ImageArray", "Fields", "Stack"])
def test_usual_labels_stay_native(source: str, tmp_path: Path) -> None:
    assert DataLoader(MAKES[source](tmp_path, LABELS["ints"]), 4).native
