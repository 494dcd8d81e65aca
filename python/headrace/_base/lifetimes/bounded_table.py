"""A table of results that are found out once, of which a limited number is kept.

Note [cleared tables]: any thread may find and clear. So a result is returned as it was found or made, and never looked
up again after it was stored: another thread may have cleared the table in between. Two threads may make the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MISSING: object = object()


class BoundedTable(Generic[K, V]):
    """Results by key.

    Args:
        most: number of results; where there are as many, all are dropped before the next one is stored.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[K, V] = {}

    def find_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Returns the result of a key; that of `make` the first time, also if it is None. An error of `make` is
        raised, and nothing is stored."""
        found = self._found.get(key, _MISSING)
        if found is _MISSING:
            made = make()
            if len(self._found) >= self._most:
                self._found.clear()
            self._found[key] = made
            return made
        return found  # type: ignore[return-value]  # not _MISSING

    def __len__(self) -> int:
        return len(self._found)
