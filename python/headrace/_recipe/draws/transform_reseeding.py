"""Reseeds, for each sample, transforms that keep their own random generators, as albumentations' do."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import torch

from headrace._base.types import Function
from headrace._recipe.draws.step_generators import (
    Seedable,
    generators_in_step,
    is_seedable,
    seedables_in_step,
    seeded_for_this_sample,
)


class Reseeded:
    """Calls `transform` after passing a seed drawn from torch to each object in it that has ``set_random_seed(seed)``.
    The generators of Python, NumPy and torch in it are seeded during the call, unless they are `left_alone`.

    Attributes:
        holds_any: whether there is something to seed.
        shared: whether some of these objects are in a function's closure or globals, which copies of the function
            share. No two threads may then call it at the same time.
    """

    def __init__(self, transform: Function) -> None:
        self.transform = transform
        # A copy of this object has those of the transform's copy.
        self._held, self._seedable = generators_in_step(transform), seedables_in_step(transform)
        values = _shared_values(transform)
        self._looked_into = values, _seedables_in(values)
        self.shared = bool(self._looked_into[1])
        self.holds_any = bool(self._held or self._seedable or self.shared)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_looked_into": ((), ())}  # a copy shares them, or finds those of its process

    def __call__(self, value: object) -> object:
        for one in (*self._seedable, *self._find_shared()):
            one.set_random_seed(int(torch.randint(2**31, (), device="cpu")))
        with seeded_for_this_sample(self._held):
            return self.transform(value)

    def _find_shared(self) -> tuple[Seedable, ...]:
        """Looks again only where a program has assigned to one of the variables."""
        values, (before, found) = _shared_values(self.transform), self._looked_into
        if len(before) != len(values) or any(one is not other for one, other in zip(before, values, strict=True)):
            found = _seedables_in(values)
            self._looked_into = values, found
        return found

    def __repr__(self) -> str:
        return repr(self.transform)


def reseed_transform(transform: Function) -> Function:
    """Returns the transform wrapped in Reseeded, or itself if nothing in it can be seeded."""
    made = Reseeded(transform)
    return made if made.holds_any else transform


def without_reseeding(transform: Function) -> Function:
    """Returns the transform in a Reseeded, or itself."""
    return transform.transform if isinstance(transform, Reseeded) else transform


def reseeded_objects(transform: object) -> list[Seedable]:
    """Returns the objects to which a `Reseeded` transform passes a seed for each sample."""
    return [*seedables_in_step(transform), *_seedables_in(_shared_values(transform))]


def _shared_values(transform: object) -> tuple[object, ...]:
    """Returns what is in the closure and globals of a function, or of a class's ``__call__``."""
    function = transform if inspect.isfunction(transform) else type(transform).__call__
    if not inspect.isfunction(function) or is_seedable(transform):
        return ()
    reached = inspect.getclosurevars(function)
    return *reached.nonlocals.values(), *reached.globals.values()


def _seedables_in(values: Iterable[object]) -> tuple[Seedable, ...]:
    return tuple(one for value in values for one in seedables_in_step(value))
