"""Copies of steps for threads and trials, which share the large arrays and tensors that calls only read.

torch's worker processes share them, too, as pages of the process that they were forked from.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from types import MethodType
from typing import TypeVar

import numpy as np
import torch

from headrace._base.types import Array
from headrace._lowering.python_steps.side_effects import Changes
from headrace._lowering.python_steps.value_sets import Unclear

T = TypeVar("T")

_LARGE = 16 << 10  # bytes; below, a copy costs nothing, and keeps changes by the program out of an epoch that has begun
_MOST = 100_000  # objects to look at


def copy_function(function: T, called: tuple[object, ...]) -> T:
    """Returns a deep copy of a function that shares what is large and what its calls do not change.

    Args:
        function: an object that calls the user's objects, or one of these.
        called: the user's objects.
    """
    return copy.deepcopy(function, _find_shared(function, called))


def find_copied(function: object) -> dict[int, object]:
    """Returns the objects that `copy_function` copies of one of the user's objects, by the ids of the originals; those
    that the copy shares are left out. Raises what copying raises."""
    shared = _find_shared(function, (function,))
    known = dict(shared)
    copy.deepcopy(function, known)
    return {key: one for key, one in known.items() if key not in shared}


def _find_shared(function: object, called: tuple[object, ...]) -> dict[int, object]:
    large: dict[int, object] = {id(one): one for one in _find_large_arrays(function)}
    for one in called if large else ():
        _exclude_changed(large, one)
    return large


def _exclude_changed(large: dict[int, object], step: object) -> None:
    """Removes from `large` what a call may change, and parameters that it reads, which the program may train."""
    changes = Changes()
    try:
        changes.record_call(step)
    except Unclear:
        large.clear()
        return
    for held, _ in changes.found:
        if held is None:
            large.clear()
        large.pop(id(held), None)
    for held in changes.touched.values():
        if isinstance(held, torch.Tensor) and held.requires_grad:
            large.pop(id(held), None)
    for module in changes.modules:
        for parameter in module.parameters(recurse=False):
            large.pop(id(parameter), None)


def _find_large_arrays(function: object) -> Iterator[Array | torch.Tensor]:
    """Yields the large arrays and tensors in an object's attributes and in theirs."""
    seen: set[int] = set()
    waiting: list[object] = [function]
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, (np.ndarray, torch.Tensor)):
            if one.nbytes >= _LARGE and one.dtype != object:
                yield one
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting.extend(one)
        elif isinstance(one, MethodType):
            waiting.append(one.__self__)
        elif isinstance(one, partial):
            waiting.extend((one.func, one.args, one.keywords))
        elif not isinstance(one, type) and isinstance(names := getattr(one, "__dict__", None), dict):
            waiting.append(names)
