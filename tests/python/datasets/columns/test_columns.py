"""`Columns` as a dataset: its samples, its layout, what it refuses."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from headrace import Columns
from support import same

RNG = np.random.default_rng(5)
FLOATS = RNG.standard_normal((9, 4, 3), dtype=np.float32)


def test_a_sample_is_a_dict_of_copies() -> None:
    labels = torch.arange(9)
    data = Columns({"x": FLOATS, "label": labels})
    sample = data[3]
    assert same(sample, {"x": torch.tensor(FLOATS[3]), "label": torch.tensor(3)})
    sample["x"].zero_()
    sample["label"].zero_()
    assert FLOATS[3].any() and labels[3] == 3
    assert same(data[-1], data[8]) and same(data[np.int64(2)], data[2])  # type: ignore[index]
    assert same(data.__getitems__([3, -1, 3]), [data[3], data[8], data[3]])
    for index in (9, -10):
        with pytest.raises(IndexError, match=f"^index {index} is out of range for a dataset of 9 samples$"):
            data[index]


def test_it_says_what_it_holds() -> None:
    data = Columns({"x": FLOATS, "label": torch.zeros(9, dtype=torch.bfloat16)})
    assert repr(data) == "Columns(9 rows of x: float32 (4, 3), label: bfloat16 ())" and len(data) == 9
    assert data.columns["x"] is FLOATS


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data))])
def test_copies_and_pickles(copied: Callable[..., Any]) -> None:
    data = Columns({"x": FLOATS, "label": torch.arange(9).to(torch.bfloat16)})
    assert same(copied(data)[4], data[4])


def test_values_may_change_in_place() -> None:
    values = np.arange(3)
    data = Columns({"x": values})
    values[1] = 7
    assert data[1]["x"] == 7
    with pytest.raises(ValueError, match="referenc"):
        values.resize(100_000)


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({}, ValueError, "^columns is empty"),
        ([FLOATS], TypeError, "^columns must be a dict of arrays by name, not list$"),
        ({3: FLOATS}, TypeError, "^the name of a column is a string, not 3$"),
        ({"x": [1, 2]}, TypeError, r"^column 'x' is a list; give a numpy array \(numpy.asarray\(...\)\) or a CPU"),
        ({"x": FLOATS, "y": FLOATS[:8]}, ValueError, "^column 'y' has 8 rows, but column 'x' has 9$"),
        ({"x": np.array(3)}, ValueError, "^column 'x' is a single value; its first axis has to count the samples$"),
        ({"x": torch.tensor(3)}, ValueError, "^column 'x' is a single value"),
        ({"x": np.array(["a", "b"])}, TypeError, "^column 'x' has dtype <U1, which torch has no tensor of"),
        ({"x": np.array([None, 1])}, TypeError, "^column 'x' has dtype object, "),
        ({"x": np.zeros(3, "datetime64[s]")}, TypeError, "^column 'x' has dtype datetime64"),
        ({"x": np.zeros(3, ">f4")}, TypeError, "^column 'x' has dtype >f4, "),
        ({"x": np.zeros(3, [("a", "f4")])}, TypeError, "^column 'x' has dtype "),
        ({"x": np.ma.masked_array([1, 2], [False, True])}, TypeError, "^column 'x' is a masked array"),
        ({"x": torch.zeros(3, device="meta")}, TypeError, "^column 'x' is a torch.strided tensor on meta; a dense one"),
        ({"x": torch.zeros(3, 3).to_sparse()}, TypeError, "^column 'x' is a torch.sparse_coo tensor on cpu"),
        ({"x": torch.zeros(3, dtype=torch.complex64).conj()}, TypeError, "^column 'x' is a view whose values"),
    ],
)
def test_what_is_no_column_is_refused_in_a_sentence(
    columns: dict[str, Any] | list[Any], error: type, words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        Columns(columns)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)
