"""Batches with arrays in the main process are those of torch's default_collate, errors included."""

from __future__ import annotations

import random
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, default_collate
from torch.utils.data._utils import collate

import headrace
from headrace._loading.collate import small_batches
from headrace._loading.collate.small_batches import collate_plainly

BATCHES = 400
DTYPES = (*("bool", "u1", "i1", "<i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "u2", ">i4", "O", "U3", "M8[s]"),)
Pair = namedtuple("Pair", "x y")


class Marked(np.ndarray):
    """A class of a program's own."""


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


#: What a program may do to an array.
CHANGES: list[Callable[[Any], Any]] = [
    *[lambda array: array] * 12,
    lambda array: np.asfortranarray(array),
    lambda array: array[::-1] if array.ndim else array,
    lambda array: array.view(Marked),
    lambda array: array[..., :1] if array.ndim else array,
    read_only,
    lambda array: array.copy().reshape(-1),
]
CONTAINERS: list[Callable[[Any, int], Any]] = [
    *[lambda array, number: array, lambda array, number: (array, number)] * 2,
    lambda array, number: [array, float(number), "text"],
    lambda array, number: {"x": array, "y": number, "z": (array, [array])},
    lambda array, number: OrderedDict(x=array),
    lambda array, number: Pair(array, number),
    lambda array, number: (number, {"x": array}),
    lambda array, number: (array, torch.tensor(number), np.float32(number), number % 2 == 0, b"bytes"),
    lambda array, number: (array, {number: array}),
    lambda array, number: (array, None),
    lambda array, number: (array, *[number] * (number % 9 == 8)),
]


def shown(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        data = value.contiguous().flatten().view(torch.uint8).tolist() if value.numel() else []
        storage = value.untyped_storage()
        return type(value), value.dtype, value.shape, value.stride(), storage.resizable(), storage.nbytes(), data
    if isinstance(value, dict):
        return type(value), list(value), [shown(one) for one in value.values()]
    if isinstance(value, (list, tuple)) and not isinstance(value, str):
        return type(value), [shown(one) for one in value]
    return type(value), value


def collated(function: Callable[[Any], Any], batch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arrays that are not writable: once a process
        try:
            return shown(function(batch))
        except Exception as error:
            return type(error), str(error)


def random_batch(draw: random.Random) -> list[Any]:
    shape = [draw.choice([1, 1, 2, 3, 5]) for _ in range(draw.randrange(5))]
    if draw.random() < 0.05:
        shape.append(0)
    dtype, container = draw.choice(DTYPES), draw.choice(CONTAINERS)
    arrays = np.arange(4 * int(np.prod(shape))).reshape(4, *shape).astype(dtype)
    change = draw.choice(CHANGES)
    samples = [np.asarray(one).copy() for one in arrays[: draw.randrange(1, 5)]]
    if draw.random() < 0.8:
        samples = [change(one) for one in samples]
    else:
        other = np.zeros(samples[-1].shape, "f4" if dtype != "f4" else "i2")
        samples[-1] = change(samples[-1]) if draw.random() < 0.5 else other
    return [container(one, 7 + number) for number, one in enumerate(samples)]


def test_random_batches_are_torchs() -> None:
    draw = random.Random(0)
    for number in range(BATCHES):
        batch = random_batch(draw)
        assert collated(collate_plainly, batch) == collated(default_collate, batch), f"batch {number}"


def test_arrays_are_stacked_without_torchs_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = [(np.full((2, 3), number, np.float32), number) for number in range(4)]
    expected = shown(default_collate(batch))

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("torch's function was called")

    monkeypatch.setattr(small_batches, "default_collate", refuse)
    assert shown(collate_plainly(batch)) == expected


@pytest.mark.parametrize("name", ["collate_numpy_array_fn", "collate_tensor_fn", "collate"])
def test_a_replaced_function_is_called(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    batch = [np.zeros(3, np.float32)] * 2
    called, plain = [], getattr(collate, name)

    def replaced(*args: Any, **kwargs: Any) -> Any:
        called.append(name)
        return plain(*args, **kwargs)

    monkeypatch.setattr(collate, name, replaced)
    if name != "collate":
        kind = np.ndarray if "numpy" in name else torch.Tensor
        monkeypatch.setitem(collate.default_collate_fn_map, kind, replaced)
    collate_plainly(batch)
    assert called


def test_a_mode_sees_what_torch_calls() -> None:
    batch = [np.zeros(3, np.float32)] * 2
    called: list[Any] = []

    class Watching(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called.append(func)
            return func(*args, **(kwargs or {}))

    with Watching():
        collate_plainly(batch)
    assert torch.stack in called
    with torch.inference_mode():
        assert collate_plainly(batch).is_inference()


class Rows(Dataset[Any]):
    def __len__(self) -> int:
        return 21

    def __getitem__(self, index: int) -> Any:
        return {"x": np.full((4, 5), index, np.uint8), "y": index}


def test_loaders_without_workers_deliver_torchs_batches_and_events() -> None:
    """Those of the profiler are made where one runs."""
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True}

    def seen(kind: Any) -> Any:
        torch.manual_seed(3)
        loader = kind(Rows(), **options)
        batches = shown(list(loader))
        with torch.autograd.profiler.profile(use_kineto=False) as profile:
            batches = batches, shown(list(loader))
        names = [(one.key, one.count) for one in profile.key_averages() if "DataLoader" in one.key]
        return batches, names, torch.rand(1)

    ours, theirs = seen(headrace.DataLoader), seen(TorchDataLoader)
    assert ours == theirs
    assert ours[1][0][1] == 7  # six batches, and the end
