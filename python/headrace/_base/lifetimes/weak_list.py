"""A list of the objects that still exist, for several threads."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_FEW = 16  # references that are not looked through


class Living(Generic[T]):
    """Refers weakly to objects, and lists those that still exist.

    In place of a ``WeakSet``, whose iteration raises RuntimeError when another thread adds an object meanwhile, and
    whose callbacks are Python: an interrupt in one is lost. References to objects that are gone are dropped when others
    are added. It has no lock, which a forked child could find taken. Each operation is one call of a dict with numbers
    as keys, which no other thread sees half done, with or without the GIL.
    """

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[T]] = {}
        self._numbers = itertools.count()
        self._most = _FEW  # references, until they are looked through again

    def add(self, one: T) -> None:
        """Adds an object, which is listed once for each time that it was added."""
        references = self._references
        references[next(self._numbers)] = weakref.ref(one)
        if len(references) > self._most:
            for number, reference in references.copy().items():
                if reference() is None:
                    references.pop(number, None)
            self._most = 2 * len(references) + _FEW

    def __iter__(self) -> Iterator[T]:
        """Iterates over the objects that exist now."""
        return iter([one for reference in self._references.copy().values() if (one := reference()) is not None])
