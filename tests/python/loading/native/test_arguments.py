"""torch's arguments and lengths; arguments that only headrace refuses or warns of, in one clear sentence each."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sized
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, SequentialSampler, Subset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from support import TENSOR, assert_same, blobs, pictures

COUNT = 22
LABELS: Any = range(COUNT)  # as long as DATA, for torch's own loader
TINY = T.Compose([T.Resize((2, 2)), *TENSOR])
DATA = blobs(COUNT, TINY)


def test_the_signature_begins_with_torchs() -> None:
    theirs = list(inspect.signature(TorchDataLoader).parameters.values())
    ours = list(inspect.signature(DataLoader).parameters.values())
    for a, b in zip(ours[: len(theirs)], theirs, strict=True):
        assert (a.name, a.default, a.kind) == (b.name, b.default, b.kind)
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in ours[len(theirs) :])
    assert issubclass(DataLoader, TorchDataLoader)


LENGTHS: list[dict[str, Any]] = [
    {},
    {"batch_size": 5},
    {"batch_size": 5, "drop_last": True},
    {"batch_size": 22},
    {"batch_size": 23},
    {"batch_size": None},
    {"sampler": [3, 4, 5, 6, 7], "batch_size": 2},
    {"sampler": [3, 4, 5, 6, 7], "batch_size": 2, "drop_last": True},
    {"batch_sampler": [[1], [2, 3]]},
    {"batch_sampler": BatchSampler(SequentialSampler(DATA), 4, True)},
    {"batch_size": 4, "num_workers": 2, "persistent_workers": True},
    {"batch_size": 4, "num_workers": 2, "prefetch_factor": 5, "in_order": False},
]


@pytest.mark.parametrize("options", LENGTHS, ids=lambda options: repr(options).partition(" object at")[0])
def test_lengths_and_attributes_are_torchs(options: dict[str, Any]) -> None:
    ours, theirs = DataLoader(DATA, **options), TorchDataLoader(LABELS, **options)
    assert len(ours) == len(theirs) == len(cast(Sized, iter(ours))) == len(list(ours))
    for name in (
        "batch_size",
        "drop_last",
        "num_workers",
        "prefetch_factor",
        "persistent_workers",
        "timeout",
        "in_order",
    ):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.dataset is DATA and type(ours.sampler) is type(theirs.sampler)
    for name in ("batch_size", "sampler", "dataset", "drop_last"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(ours, name, None)
    ours.close()


def test_a_sampler_without_a_length() -> None:
    class Unsized:
        def __iter__(self) -> Iterator[int]:
            return iter([1, 2, 3])

    loader = DataLoader(DATA, 2, sampler=Unsized())
    for one in (loader, iter(loader)):
        with pytest.raises(TypeError):
            len(cast(Sized, one))
    assert [labels.tolist() for _, labels in loader] == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_workers": None}, TypeError, "not supported between instances of 'NoneType' and 'int'"),
        ({"num_workers": 1.5}, TypeError, "num_workers must be a whole number, not 1.5"),
        ({"num_workers": 1, "prefetch_factor": 1.5}, TypeError, "prefetch_factor must be a whole number"),
        ({"sampler": 3}, TypeError, "sampler must be iterable, not 3"),
        ({"batch_sampler": 3}, TypeError, "batch_sampler must be iterable, not 3"),
        ({"timeout": "1"}, TypeError, "timeout must be a number of seconds, not '1'"),
        ({"generator": 3}, TypeError, "generator must be a torch.Generator or None, not 3"),
        ({"seed": 1.5}, TypeError, "seed must be a whole number, not 1.5"),
        ({"seed": "1"}, TypeError, "seed must be a whole number, not '1'"),
        ({"dtype": "float33"}, ValueError, "dtype must be one of torch.float32, .*, not 'float33'"),
        ({"dtype": torch.float64}, ValueError, "dtype must be one of .*, not torch.float64"),
        ({"dtype": torch.uint8}, TypeError, "dtype=torch.uint8 would cut"),
        ({"memory_format": torch.preserve_format}, ValueError, "memory_format must be torch.contiguous_format or"),
        ({"memory_format": "NHWC"}, ValueError, "memory_format must be .*, not 'NHWC'"),
        ({"on_error": "ignore"}, ValueError, "on_error must be one of raise, skip, replace, not 'ignore'"),
        ({"on_error": None}, ValueError, "on_error must be one of raise, skip, replace, not None"),
        ({"max_errors": -1}, ValueError, "max_errors must be 0 or more, not -1"),
        ({"max_errors": 1.5}, TypeError, "max_errors must be a whole number, not 1.5"),
        ({"device": 3}, TypeError, "device"),
    ],
    ids=repr,
)
def test_wrong_arguments_get_one_clear_sentence(options: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        DataLoader(DATA, **options)
    assert "\n" not in str(raised.value)


def test_numbers_of_numpy_are_numbers() -> None:
    options: dict[str, Any] = {
        "num_workers": np.int32(1),
        "prefetch_factor": np.uint8(3),
        "max_errors": np.int8(3),
        "seed": np.int64(4),
    }
    loader = DataLoader(DATA, 5, **options)
    assert_same(loader, DataLoader(DATA, 5, seed=4))
    assert type(loader.state_dict()["seed"]) is int
    big = 2**80 + 1
    assert_same(DataLoader(DATA, 5, True, seed=big), DataLoader(DATA, 5, True, seed=big))
    assert_same(DataLoader(DATA, 5, True, seed=-1), DataLoader(DATA, 5, True, seed=-1))


def test_collate_fn_may_be_torchs_default() -> None:
    for batch_size, collate in ((5, torch.utils.data.default_collate), (None, torch.utils.data.default_convert)):
        loader = DataLoader(DATA, batch_size, collate_fn=collate)
        assert loader.native
        assert_same(loader, DataLoader(DATA, batch_size))


@pytest.mark.parametrize("make", [lambda: EncodedImages([], None, TINY), lambda: Subset(blobs(COUNT, TINY), [])])
def test_an_empty_dataset_has_no_batch(make: Callable[..., Any]) -> None:
    assert DataLoader(make()).native
    for kind in (TorchDataLoader, DataLoader):
        assert len(kind(make(), 2)) == 0 and list(kind(make(), 2)) == []
        with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
            kind(make(), 2, shuffle=True)


def test_a_batch_larger_than_the_dataset() -> None:
    with pytest.warns(UserWarning, match=r"batch_size=23 is larger than the dataset \(22 samples\) and drop_last=True"):
        loader = DataLoader(DATA, 23, drop_last=True)
    assert len(loader) == 0 and list(loader) == [] and list(loader) == []
    assert len(list(DataLoader(DATA, 23))) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"multiprocessing_context": "spawn", "num_workers": 1}, "multiprocessing_context has no effect"),
        ({"pin_memory_device": "cuda"}, "pin_memory_device has no effect"),
    ],
)
def test_what_has_no_effect_is_warned_of_where_it_was_written(options: dict[str, Any], words: str) -> None:
    with pytest.warns(UserWarning, match=words) as told:
        DataLoader(DATA, **options)
    assert [one.filename for one in told] == [__file__]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is something to pin for")
def test_pin_memory_without_an_accelerator_warns_as_torch_does() -> None:
    ours, theirs = DataLoader(DATA, pin_memory=True), TorchDataLoader(LABELS, pin_memory=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        iter(ours), iter(theirs)
    assert str(told[0].message) == str(told[1].message) and told[0].category is told[1].category
    assert told[0].filename == __file__


def test_more_threads_than_cores_are_no_warning() -> None:
    assert len(list(DataLoader(DATA, 5, num_workers=40))) == 5


@pytest.mark.parametrize("epoch", [-1, 1.5, "1", None, True])
def test_set_epoch_takes_whole_numbers(epoch: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="epoch must be"):
        DataLoader(DATA).set_epoch(epoch)


def test_batches_are_lists_as_torchs_are() -> None:
    assert type(next(iter(DataLoader(DATA, 2)))) is list
    assert type(next(iter(DataLoader(DATA, None)))) is list
    assert type(next(iter(DataLoader(EncodedImages(pictures(), None, TINY), 2)))) is torch.Tensor
