"""Finds the tensors of samples or of a batch that nothing else refers to, by the counts of all references to them."""

from __future__ import annotations

import collections
import math
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from headrace._base.native import has_gil


def has_sole_memory(tensor: torch.Tensor) -> bool:
    """Whether nothing but this object refers to the tensor and its memory."""
    if tensor.requires_grad or tensor.layout is not torch.strided or tensor.is_nested:
        return False
    return _count_users(tensor) == _USERS_OF_ONE


def find_sole_tensors(batch: object, samples: object = None, most: float = math.inf) -> list[torch.Tensor]:
    """Returns the tensors in a batch, and in the lists, tuples and dicts in it, that nothing else refers to.

    Args:
        batch, samples: containers that nothing else refers to: the caller knows that, and keeps them. Samples may have
            tensors that are in the batch, too; other tensors in them are not returned.
        most: objects in a container and those in it; of more, none is returned.
    """
    found: dict[int, _Found] = {}
    if not _note_objects([batch], found, most):
        return []
    of_batch = list(found)
    if samples is not None and not _note_objects([samples], found, most):
        return []
    outside = {key for key, entry in found.items() if _excess(entry) != _REFERENCES_OF_ENTRY}
    of_others: dict[int, _Found] = {}
    if id(batch) in found or id(samples) in found:
        return []
    if not _note_objects([found[key][0] for key in outside if type(found[key][0]) in _CONTAINERS], of_others, most):
        return []
    sole = [found[key][0] for key in of_batch if key not in outside and key not in of_others]
    return [one for one in sole if type(one) is torch.Tensor and has_sole_memory(one)]


#: An object, and the number of its places in containers.
_Found: TypeAlias = "list[Any]"


def _note_objects(roots: Sequence[object], found: dict[int, _Found], most: float) -> bool:
    """Notes the tensors and containers in the roots, by id; False: there are too many objects to look at."""
    waiting: list[Any] = list(roots)
    count = 0
    while waiting:
        container = waiting.pop()
        count += len(container)
        if count > most:
            return False
        for one in container.values() if type(container) is dict else container:
            if type(one) is not torch.Tensor and type(one) not in _CONTAINERS:
                continue
            if id(one) not in found:
                found[id(one)] = [one, 0]
                if type(one) is not torch.Tensor:
                    waiting.append(one)
            found[id(one)][1] += 1
    return True


def _excess(entry: _Found) -> int:
    return sys.getrefcount(entry[0]) - int(entry[1])


_REFERENCES_OF_ENTRY = _excess([object(), 0])
_CONTAINERS = (list, tuple, dict)


def dict_of(batch: object) -> object:
    """Returns the dict of a UserDict, as transformers' batches are, that nothing else refers to; else the object."""
    if isinstance(batch, collections.UserDict):
        data, references = _data_of(batch)
        if type(data) is dict and references == _DATA_REFERENCES:
            return data
    return batch


def _data_of(batch: Any) -> tuple[object, int]:
    data = batch.__dict__.get("data")
    return data, sys.getrefcount(data)


_DATA_REFERENCES = _data_of(collections.UserDict())[1]


def _count_users(tensor: torch.Tensor) -> tuple[int, int, int]:
    """Numbers of the references to a tensor in C++, to its memory, and to the Python object of that."""
    storage = tensor.untyped_storage()
    count: int = tensor._use_count()  # type: ignore[attr-defined]
    return count, torch._C._storage_Use_Count(storage._cdata), sys.getrefcount(storage)


def is_possible() -> bool:
    """Whether this version of torch, and the interpreter, count all references."""
    return has_gil() and hasattr(torch.Tensor, "_use_count") and hasattr(torch._C, "_storage_Use_Count")


_USERS_OF_ONE = _count_users(torch.from_numpy(np.empty(1))) if is_possible() else (0, 0, 0)
