"""A list of the objects that still exist, for several threads."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Living(Generic[T]):
    """Refers weakly to objects, and lists those that still exist.

    In place of a ``WeakSet``, whose iteration raises RuntimeError when another thread adds an object meanwhile. It has
    no lock, which a forked child could find taken. Each operation is one call of a dict with numbers as keys, which no
    other thread sees half done, with or without the GIL.
    """

    def __init__(self) -> None:
        references: dict[int, weakref.ref[T]] = {}

        # Refers neither to this object nor to a global, which may be gone when the interpreter ends.
        def forget(reference: weakref.ref[T], number: Callable[[object], int] = id) -> None:
            references.pop(number(reference), None)

        self._forget = forget
        self._references = references

    def add(self, one: T) -> None:
        """Adds an object, which is listed once for each time that it was added."""
        reference = weakref.ref(one, self._forget)
        self._references[id(reference)] = reference

    def __iter__(self) -> Iterator[T]:
        """Iterates over the objects that exist now."""
        return iter([one for reference in self._references.copy().values() if (one := reference()) is not None])
