"""Puts our versions of other libraries' functions in their places, and takes them away again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where a function is.

    Attributes:
        module: name of the module; it is never imported.
        find: returns what holds the function, a class, module or dict, given the module.
        name: of the function in it: an attribute or a key.
        version: returns ours, given the one that is there.
    """

    module: str
    find: Callable[[Any], Any]
    name: Any
    version: Callable[[Any], Any]


def method(module: str, of: str, name: str, version: Callable[[Any], Any]) -> Place:
    """The place of a method of a class."""
    return Place(module, lambda found: getattr(found, of, None), name, version)


def function(module: str, name: str, version: Callable[[Any], Any]) -> Place:
    """The place of a function of a module."""
    return Place(module, lambda found: found, name, version)


class Replacements:
    """Functions that can be replaced together.

    Args:
        places: theirs.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._replaced: dict[Place, tuple[Any, Any, Any]] = {}  # what holds the function, the one before, and ours

    def replace(self) -> bool:
        """Replaces the functions of those modules that have been imported. Returns whether these are all."""
        for place in self._places:
            module = sys.modules.get(place.module)
            holder = None if module is None or place in self._replaced else place.find(module)
            before = None if holder is None else _of(holder, place.name)
            if before is not None:
                ours = place.version(before)
                self._replaced[place] = holder, before, ours
                _set(holder, place.name, ours)
        return len(self._replaced) == len(self._places)

    def put_back(self) -> None:
        """Undoes `replace`. A function that other code has replaced since stays; ours below does what the one before
        does."""
        for place, (holder, before, ours) in self._replaced.items():
            if _of(holder, place.name) is ours:
                _set(holder, place.name, before)
        self._replaced = {}


def _of(holder: Any, name: Any) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _set(holder: Any, name: Any, value: Any) -> None:
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)
