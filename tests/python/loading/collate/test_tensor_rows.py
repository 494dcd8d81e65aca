"""Batches of a TensorDataset with num_workers=0 are torch's, errors and replaced functions included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import TensorDataset, default_collate

import headrace
from headrace._loading.collate import tensor_rows


class Marked(torch.Tensor):
    """A class of a program's own."""


class Doubled(TensorDataset):
    def __getitem__(self, index: Any) -> Any:
        return tuple(2 * one for one in super().__getitem__(index))


class Listed(TensorDataset):
    def __getitems__(self, indices: list[int]) -> Any:
        return [super(Listed, self).__getitem__(-1 - index) for index in indices]


FLOATS = torch.rand(11, 3, 4, 5)
DATASETS: dict[str, Callable[[], Any]] = {
    "images and labels": lambda: TensorDataset(FLOATS, torch.arange(11)),
    "one tensor": lambda: TensorDataset(torch.rand(11)),
    "bytes and texts of bits": lambda: TensorDataset((FLOATS * 255).byte(), FLOATS > 0.5, FLOATS.bfloat16()),
    "nothing in a row": lambda: TensorDataset(torch.rand(11, 0, 3)),
    "channels last": lambda: TensorDataset(FLOATS.contiguous(memory_format=torch.channels_last)),
    "every other row": lambda: TensorDataset(torch.rand(22, 3)[::2]),
    "one row for all": lambda: TensorDataset(torch.rand(1, 3).expand(11, 3)),
    "with a gradient": lambda: TensorDataset(torch.rand(11, 3, requires_grad=True)),
    "conjugated": lambda: TensorDataset(torch.rand(11, 3, dtype=torch.complex64).conj()),
    "unsigned": lambda: TensorDataset(torch.arange(11).to(torch.uint16)),
    "of another class": lambda: TensorDataset(torch.rand(11, 3).as_subclass(Marked)),
    "sparse": lambda: TensorDataset(torch.eye(11).to_sparse()),
    "a subclass": lambda: Doubled(FLOATS),
    "whole batches": lambda: Listed(FLOATS, torch.arange(11)),
    "not a number": lambda: TensorDataset(torch.tensor([float("nan"), -0.0] * 6)[:11]),
}


def shown(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value), [shown(one) for one in value]
    dense = value.detach()
    dense = dense.to_dense() if dense.layout is not torch.strided else dense.resolve_conj()
    data = dense.contiguous().flatten().view(torch.uint8).tolist() if dense.numel() else []
    strides = value.stride() if value.layout is torch.strided else None
    return type(value), value.dtype, value.shape, strides, value.requires_grad, data


def outcome(kind: Any, dataset: Any, **more: Any) -> Any:
    torch.manual_seed(5)
    try:
        found = [shown(batch) for batch in kind(dataset, **more)]
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    return found, torch.rand(1).item()


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("more", [{"batch_size": 4, "shuffle": True}, {"batch_size": 3, "drop_last": True}, {}])
def test_batches_are_torchs(name: str, more: dict[str, Any]) -> None:
    dataset = DATASETS[name]()
    assert outcome(headrace.DataLoader, dataset, **more) == outcome(TorchDataLoader, dataset, **more)


@pytest.mark.parametrize("indices", [[[0, -1]], [[3, 11]], [[True, 2]], [(1, 2)], [[torch.tensor(4)]], [[]], [["a"]]])
def test_any_indices(indices: Any) -> None:
    dataset = TensorDataset(FLOATS, torch.arange(11))
    more = {"batch_sampler": indices}
    assert outcome(headrace.DataLoader, dataset, **more) == outcome(TorchDataLoader, dataset, **more)


def _loader() -> Any:
    return headrace.DataLoader(TensorDataset(FLOATS, torch.arange(11)), 4)


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the batches whose rows were copied at once."""
    sizes: list[int] = []
    copy = tensor_rows._copy_rows

    def note(tensors: Any, indices: Any) -> Any:
        sizes.append(len(indices))
        return copy(tensors, indices)

    monkeypatch.setattr(tensor_rows, "_copy_rows", note)
    return sizes


def test_rows_are_copied_at_once(copied: list[int]) -> None:
    assert [len(images) for images, _ in _loader()] == copied == [4, 4, 3]


def test_functions_of_a_program_are_called(copied: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(list(headrace.DataLoader(TensorDataset(FLOATS), 4, collate_fn=lambda rows: default_collate(rows)))) == 3
    get = TensorDataset.__getitem__
    called: list[int] = []

    def note(self: TensorDataset, index: int) -> Any:
        called.append(index)
        return get(self, index)

    monkeypatch.setattr(TensorDataset, "__getitem__", note)
    assert len(list(_loader())) == 3
    assert called == list(range(11)) and not copied


def test_seeded_samples_are_torchs() -> None:
    dataset = TensorDataset(FLOATS)
    seeded = [shown(batch) for batch in headrace.DataLoader(dataset, 4, seed=3)]
    assert seeded == [shown(batch) for batch in TorchDataLoader(dataset, 4)]
