"""PaddingCollate pads sequences and leaves the rest to default_collate; errors name the sample that does not fit."""

from __future__ import annotations

import pickle
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import default_collate

from headrace.sampler import Padded, PaddingCollate

Pair = namedtuple("Pair", ["words", "label"])


def assert_padded(found: Padded, rows: list, lengths: list[int], dtype: torch.dtype = torch.int64) -> None:
    assert isinstance(found, Padded)
    assert torch.equal(found.values, torch.tensor(rows, dtype=dtype)) and found.values.dtype == dtype
    assert found.lengths.tolist() == lengths and found.lengths.dtype == torch.int64


READONLY = np.array([1, 2, 3])
READONLY.flags.writeable = False


@pytest.mark.parametrize(
    "samples",
    [
        [[1, 2, 3], [4]],
        [torch.tensor([1, 2, 3]), torch.tensor([4])],
        [READONLY, np.array([9, 9, 4])[::-1][:1]],
        [np.array([1, 2, 3]), [4]],
    ],
    ids=["lists", "tensors", "arrays", "mixed"],
)
def test_sequences_become_values_and_lengths(samples: list[Any]) -> None:
    values, lengths = found = PaddingCollate(-1)(samples)
    assert_padded(found, [[1, 2, 3], [4, -1, -1]], [3, 1])
    assert torch.equal(found.mask, torch.tensor([[True, True, True], [True, False, False]]))
    packed = pack_padded_sequence(values, lengths, batch_first=True)
    assert packed.data.tolist() == [1, 4, 2, 3]


def test_the_batch_is_the_users_own_memory() -> None:
    array = np.array([1, 2, 3])
    batch = PaddingCollate()([array, array])
    batch.values.zero_()
    assert array.tolist() == [1, 2, 3]


def test_other_dimensions_stay() -> None:
    samples = [torch.randn(5, 2, 3), torch.randn(1, 2, 3), torch.randn(0, 2, 3)]
    values, lengths = PaddingCollate(0.5)(samples)
    assert values.shape == (3, 5, 2, 3) and lengths.tolist() == [5, 1, 0]
    for row, sample in zip(values, samples, strict=True):
        assert torch.equal(row[: len(sample)], sample) and (row[len(sample) :] == 0.5).all()
    assert_padded(PaddingCollate()([[[1, 2]], [[3, 4], [5, 6]]]), [[[1, 2], [0, 0]], [[3, 4], [5, 6]]], [1, 2])


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.float16, torch.float64, torch.complex64])
def test_dtypes_stay(dtype: torch.dtype) -> None:
    found = PaddingCollate(1)([torch.zeros(1, dtype=dtype), torch.zeros(2, dtype=dtype)])
    assert_padded(found, [[0, 1], [0, 0]], [1, 2], dtype)


def test_tokens_of_two_bytes_stay() -> None:
    found = PaddingCollate(65535)([np.array([7], np.uint16), np.array([1, 2], np.uint16)])
    assert found.values.dtype == torch.uint16 and found.values.tolist() == [[7, 65535], [1, 2]]


def test_empty_lists_have_the_dtype_of_the_others() -> None:
    assert_padded(PaddingCollate(9)([[], [1, 2]]), [[9, 9], [1, 2]], [0, 2])
    assert PaddingCollate()([[], [[1, 2]]]).values.shape == (2, 1, 2)
    nothing = PaddingCollate()([[], []])
    assert nothing.values.shape == (2, 0) and nothing.lengths.tolist() == [0, 0] and nothing.mask.shape == (2, 0)


def test_what_is_no_sequence_is_collated_as_ever() -> None:
    """The other entries equal default_collate's, in its order."""
    rest = [
        {"label": 1, "weight": 0.5, "name": "a", "image": torch.ones(()), "pair": (1, "x"), "bytes": b"1"},
        {"label": 2, "weight": 0.7, "name": "b", "image": torch.zeros(()), "pair": (2, "y"), "bytes": b"2"},
    ]
    expected = default_collate(rest)
    found = PaddingCollate()([{**one, "ids": [1] * (i + 1)} for i, one in enumerate(rest)])
    assert_padded(found.pop("ids"), [[1, 0], [1, 1]], [1, 2])
    assert str(found) == str(expected) and found["weight"].dtype == torch.float64
    assert all(torch.equal(found[key], expected[key]) for key in ("label", "weight", "image"))
    assert torch.equal(PaddingCollate()([1, 2]), default_collate([1, 2]))
    assert PaddingCollate()([["a", "b"], ["c", "d"]]) == default_collate([["a", "b"], ["c", "d"]])


def test_tuples_give_lists_and_named_tuples_themselves() -> None:
    (values, lengths), labels = batch = PaddingCollate()([([1], 5), ([1, 2], 6)])
    assert isinstance(batch, list) and torch.equal(labels, torch.tensor([5, 6]))
    assert values.tolist() == [[1, 0], [1, 2]] and lengths.tolist() == [1, 2]
    pair = PaddingCollate()([Pair([1], 5), Pair([1, 2], 6)])
    assert isinstance(pair, Pair) and pair.words.lengths.tolist() == [1, 2] and pair.label.tolist() == [5, 6]
    nested = PaddingCollate()([({"a": ([1],)}, 0), ({"a": ([1, 2],)}, 0)])
    assert nested[0]["a"][0].lengths.tolist() == [1, 2]


def test_a_dict_names_places_and_their_padding() -> None:
    samples = [
        {"words": [1, 2], "tags": [3, 4], "image": torch.ones(2, 2), "box": [1, 2]},
        {"words": [1], "tags": [3], "image": torch.zeros(2, 2), "box": [3, 4]},
    ]
    batch = PaddingCollate({"words": 0, "tags": -100})(samples)
    assert_padded(batch["words"], [[1, 2], [1, 0]], [2, 1])
    assert_padded(batch["tags"], [[3, 4], [3, -100]], [2, 1])
    assert batch["image"].shape == (2, 2, 2) and [one.tolist() for one in batch["box"]] == [[1, 3], [2, 4]]
    tuples = PaddingCollate({0: 7})([([1], [5, 5]), ([1, 2], [6, 6])])
    assert_padded(tuples[0], [[1, 7], [1, 2]], [1, 2])
    assert [one.tolist() for one in tuples[1]] == [[5, 6], [5, 6]]
    deep = PaddingCollate({0: {"words": 8}})([({"words": [1]}, [1]), ({"words": [1, 2]}, [2])])
    assert_padded(deep[0]["words"], [[1, 8], [1, 2]], [1, 2])
    assert deep[1][0].tolist() == [1, 2]


def test_it_goes_into_processes() -> None:
    collate = pickle.loads(pickle.dumps(PaddingCollate({"words": 3})))
    assert collate([{"words": [1]}]).keys() == {"words"}
    batch = pickle.loads(pickle.dumps(PaddingCollate()([[1], [1, 2]])))
    assert_padded(batch, [[1, 0], [1, 2]], [1, 2])


@pytest.mark.parametrize(
    ("padding", "samples", "error", "words"),
    [
        (0, [[1], [1.5]], TypeError, "^sample 1 is of torch.float32, but sample 0 of torch.int64$"),
        (0, [([], 1), ([1], 1), ([True], 1)], TypeError, r"^sample 2 at \[0\] is of torch.bool, but sample 1 of"),
        (
            0,
            [{"a": np.zeros((2, 3))}, {"a": np.zeros((2, 4))}],
            ValueError,
            r"sample 1 at \['a'\] has the shape \(2, 4",
        ),
        (0, [torch.zeros(2), torch.zeros(2, 1)], ValueError, "only the first dimension may differ"),
        (0, [[1], 3], TypeError, "^sample 1 is of type int, not a sequence of numbers$"),
        (0, [[1], torch.tensor(3)], TypeError, "sample 1 is a Tensor of 0 dimensions, not a sequence"),
        (0, [[1], ["a"]], TypeError, "sample 1 is of type list, not a sequence of numbers"),
        (0, [[1], [1, "a"]], TypeError, "sample 1 cannot be converted to a tensor"),
        (0, [[[1], [1, 2]]], TypeError, "sample 0 cannot be converted to a tensor"),
        (0, [([1], 2), ([1],)], ValueError, r"^sample 1 has the entries \[0\], but sample 0 has \[0, 1\]$"),
        (0, [{"a": [1]}, {"b": [1]}], ValueError, r"sample 1 has the entries \['b'\]"),
        (0, [{"a": [1]}, ([1],)], TypeError, "sample 1 is of type tuple, but sample 0 is of type dict"),
        (0, [([1],), [1]], TypeError, "sample 1 is of type list, but sample 0 is of type tuple"),
        (0.5, [[1], [2, 3]], ValueError, "^the sequences are of torch.int64, which cannot hold padding_value=0.5$"),
        (-1, [{"a": np.zeros(1, np.uint8)}], ValueError, r"at \['a'\] are of torch.uint8, which cannot hold"),
        (2, [[True]], ValueError, "torch.bool, which cannot hold padding_value=2"),
        (float("nan"), [[1]], ValueError, "cannot hold padding_value=nan"),
        ({"b": 0}, [{"a": [1]}], ValueError, r"names 'b', but the samples have \['a'\]"),
        ({"a": {"b": 0}}, [{"a": [1]}], TypeError, r"names entries at \['a'\], but sample 0 is of type list there"),
        ({0: 0}, [([1], 2), (5, 2)], TypeError, r"sample 1 at \[0\] is of type int"),
        ({1: 0}, [([1], 2), ([1], 2)], TypeError, r"sample 0 at \[1\] is of type int, not a sequence"),
    ],
)
def test_what_does_not_go_together_is_named(
    padding: float | dict[str, Any], samples: list[Any], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        PaddingCollate(padding)(samples)


@pytest.mark.parametrize("padding", ["0", None, [0], {"a": "0"}, {"a": {"b": None}}])
def test_what_is_no_padding(padding: Any) -> None:
    with pytest.raises(TypeError, match="padding_value must be a number or a dict of entries and numbers"):
        PaddingCollate(padding)


def test_a_padding_that_the_dtype_does_not_have() -> None:
    halves = [torch.ones(2, dtype=torch.float16), torch.ones(3, dtype=torch.float16)]
    with pytest.raises(ValueError, match=r"torch.float16, which cannot hold padding_value=1000000000.0"):
        PaddingCollate(1e9)(halves)
    assert PaddingCollate(float("-inf"))(halves).values[0, 2] == float("-inf")
