"""What transforms hold, compared by identity with what they held when an epoch began."""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_
from types import FunctionType, ModuleType

import numpy as np
import torch

_MOST = 2000  # objects; a transform that holds more is compared in part
_VALUES = (str, bytes, int, float, complex, type(None), type, FunctionType, ModuleType, np.ndarray, torch.Tensor)


class Snapshot:
    """The classes and attributes of objects, the items of their lists and dicts, and so on.

    Values that change in themselves otherwise, such as arrays, are not looked into.

    Args:
        roots: the objects.
        but: objects among theirs that are not looked into.
    """

    def __init__(self, roots: Iterable[object], but: Iterable[object] = ()) -> None:
        self._dicts: list[tuple[dict[object, object], tuple[object, ...]]] = []
        self._lists: list[tuple[list[object], tuple[object, ...]]] = []
        self._objects: list[object] = []
        seen = {id(one): one for one in but}
        waiting = list(roots)
        while waiting and len(seen) < _MOST:
            one = waiting.pop()
            if isinstance(one, _VALUES) or id(one) in seen:
                continue
            seen[id(one)] = one
            if isinstance(one, dict):
                values = tuple(one.values())
                self._dicts.append((one, values))
            elif isinstance(one, (list, tuple)):
                values = tuple(one)
                if isinstance(one, list):
                    self._lists.append((one, values))
            else:
                values = (getattr(one, "__dict__", None),)
                self._objects.append(one)
            waiting += values
        self._classes = [type(one) for one in self._objects]

    def is_current(self) -> bool:
        """Returns whether all of it is as it was."""
        for held, values in self._dicts:
            if len(held) != len(values) or not all(map(is_, held.values(), values)):
                return False
        if not all(map(is_, map(type, self._objects), self._classes)):
            return False
        return all(len(held) == len(values) and all(map(is_, held, values)) for held, values in self._lists)
