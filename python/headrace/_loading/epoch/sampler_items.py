"""Which samples an item of a sampler names, and which items are left to torch's way of making a batch."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.types import Array

Int64s = npt.NDArray[np.int64]

_INDEX_TENSORS = (torch.int64, torch.int32)  # bytes and bools are masks for some datasets


@dataclass(frozen=True)
class Naming:
    """How an epoch reads the items of its sampler.

    Attributes:
        single: whether an item is what torch passes to the dataset as a whole, as with ``batch_size=None``.
        others: whether a batch that native threads cannot make from its items may be made as torch makes it; otherwise
            such an item is an error.
        live: whether the dataset may have changed since the epoch began, as it does for torch without workers.
    """

    single: bool = False
    others: bool = False
    live: bool = False


def as_indices(named: Any, naming: Naming) -> tuple[Int64s | None, object]:
    """Returns the samples that an item names, int64 (n,), and what torch would pass to the dataset.

    The first is None if only torch's way makes the batch: the item is no number or sequence of numbers, or its numbers
    are of a kind that a dataset may take for something else than the number of a sample, such as True.

    Raises:
        TypeError: the item is no index or sequence of indices, and torch's way is not open.
    """
    if not naming.others:
        return _as_int64_array(named), named
    if naming.single:
        return _plain_numbers_as_array([named]), named
    if isinstance(named, torch.Tensor):
        whole = named.ndim == 1 and named.dtype in _INDEX_TENSORS and named.device.type == "cpu"
        return (named.numpy().astype(np.int64) if whole and len(named) else None), named
    if isinstance(named, np.ndarray):
        whole = named.ndim == 1 and named.dtype.kind in "iu" and len(named) > 0
        return (_array_as_indices(named) if whole else None), named
    if not isinstance(named, (list, tuple)):
        try:
            named = list(named)  # an iterator gives its values once
        except TypeError:
            return None, named
    return _plain_numbers_as_array(named), named


def _plain_numbers_as_array(given: Sequence[Any]) -> Int64s | None:
    """Returns numbers as an array; None if one of them is of another kind, or there are none."""
    kinds = set(map(type, given))
    try:
        if kinds == {int}:
            return np.array(given, dtype=np.int64)
        if not kinds or not all(one is int or one is torch.Tensor or issubclass(one, np.integer) for one in kinds):
            return None
        if torch.Tensor in kinds and not all(
            one.ndim == 0 and one.dtype in _INDEX_TENSORS for one in given if isinstance(one, torch.Tensor)
        ):
            return None
        indices = np.array([int(one) for one in given], dtype=np.int64)
    except OverflowError:
        return None
    # Arithmetic of numpy's small numbers with a dataset's length overflows.
    return None if kinds - {int, torch.Tensor, np.int64} and indices.min() < 0 else indices


def _array_as_indices(named: Array) -> Int64s | None:
    if named.dtype == np.uint64 and int(named.max()) >= 2**63:
        return None
    return None if named.dtype != np.int64 and named.min() < 0 else named.astype(np.int64)


def _as_int64_array(named: Any) -> Int64s:
    """Returns a sampler's item, an index or a sequence of indices of any type with ``__index__``, as int64 (n,)."""
    if isinstance(named, torch.Tensor):
        named = named.tolist()
    try:
        single = hasattr(type(named), "__index__") and not isinstance(named, np.ndarray)
        given = [named] if single else list(named)
        indices = np.asarray(given or [], dtype=None if given else np.int64)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":  # bool, one-element tensors, mixed kinds
            indices = np.array([operator.index(one) for one in given], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"the sampler yielded {named!r}; an integer index or a list of them is needed") from None
    return indices.astype(np.int64)
