"""Transforms that keep random generators of their own, as albumentations' do: seeded anew for each sample."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch


class Reseeded:
    """Calls `transform`; before that, everything in it that has a ``set_random_seed(seed)`` gets one drawn from torch.

    Attributes:
        shared: whether some of these are not in the object itself but in a function's surroundings, which a copy of the
            function shares: then no two threads may call it.
    """

    def __init__(self, transform: Callable[[Any], Any]) -> None:
        self.transform = transform
        self.shared = any(True for _ in _around(transform))

    def __call__(self, value: Any) -> Any:
        for one in (*_inside(self.transform), *_around(self.transform)):
            one.set_random_seed(int(torch.randint(2**31, (), device="cpu")))
        return self.transform(value)

    def __repr__(self) -> str:
        return repr(self.transform)


def reseeded(transform: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The transform itself, where nothing in it can be seeded."""
    found = any(True for _ in (*_inside(transform), *_around(transform)))
    return Reseeded(transform) if found else transform


def _seedable(value: Any) -> bool:
    return not inspect.isclass(value) and callable(getattr(value, "set_random_seed", None))


def _inside(transform: Any) -> Iterator[Any]:
    """The object, else the attributes of an instance, that can be seeded."""
    if _seedable(transform):
        yield transform
    else:
        yield from (value for value in getattr(transform, "__dict__", {}).values() if _seedable(value))


def _around(transform: Any) -> Iterator[Any]:
    """What a function, or a class's ``__call__``, can reach and that can be seeded: cells of its closure, globals."""
    function = transform if inspect.isfunction(transform) else type(transform).__call__
    if not inspect.isfunction(function) or _seedable(transform):
        return
    reached = inspect.getclosurevars(function)
    yield from (value for value in (*reached.nonlocals.values(), *reached.globals.values()) if _seedable(value))
