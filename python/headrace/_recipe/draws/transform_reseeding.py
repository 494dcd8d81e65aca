"""Reseeds, for each sample, transforms that keep their own random generators, as albumentations' do."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Protocol, TypeGuard

import torch

from headrace._base.types import Function
from headrace._recipe.draws.step_generators import generators_in_step, seeded_for_this_sample


class Seedable(Protocol):
    def set_random_seed(self, seed: int) -> object: ...


class Reseeded:
    """Calls `transform` after passing a seed drawn from torch to each object in it that has ``set_random_seed(seed)``.
    The generators of Python, NumPy and torch in it are seeded during the call, unless they are `left_alone`.

    Attributes:
        shared: whether some of these objects are in a function's closure or globals, which copies of the function
            share. No two threads may then call it at the same time.
    """

    def __init__(self, transform: Function) -> None:
        self.transform = transform
        self._held = generators_in_step(transform)  # a copy of this object has those of the transform's copy
        self.shared = any(True for _ in _seedable_globals(transform))

    def __call__(self, value: object) -> object:
        for one in (*_seedable_attributes(self.transform), *_seedable_globals(self.transform)):
            one.set_random_seed(int(torch.randint(2**31, (), device="cpu")))
        with seeded_for_this_sample(self._held):
            return self.transform(value)

    def __repr__(self) -> str:
        return repr(self.transform)


def reseed_transform(transform: Function) -> Function:
    """Returns the transform wrapped in Reseeded, or itself if nothing in it can be seeded."""
    found = generators_in_step(transform) or any(
        True for _ in (*_seedable_attributes(transform), *_seedable_globals(transform))
    )
    return Reseeded(transform) if found else transform


def without_reseeding(transform: Function) -> Function:
    """Returns the transform in a Reseeded, or itself."""
    return transform.transform if isinstance(transform, Reseeded) else transform


def _is_seedable(value: object) -> TypeGuard[Seedable]:
    return not inspect.isclass(value) and callable(getattr(value, "set_random_seed", None))


def _seedable_attributes(transform: object) -> Iterator[Seedable]:
    """Yields the object if it can be seeded, otherwise those of its attributes that can."""
    if _is_seedable(transform):
        yield transform
    else:
        yield from (value for value in getattr(transform, "__dict__", {}).values() if _is_seedable(value))


def _seedable_globals(transform: object) -> Iterator[Seedable]:
    """Yields the objects in the closure and globals of a function, or of a class's ``__call__``, that can be seeded."""
    function = transform if inspect.isfunction(transform) else type(transform).__call__
    if not inspect.isfunction(function) or _is_seedable(transform):
        return
    reached = inspect.getclosurevars(function)
    yield from (value for value in (*reached.nonlocals.values(), *reached.globals.values()) if _is_seedable(value))
