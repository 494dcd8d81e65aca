"""The loader's attributes ``num_workers`` and ``prefetch_factor``: numbers, also where the loader chooses them."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace._loading.autotune.tuner import Tuner


def _is_auto(given: object) -> bool:
    from headrace._loading.autotune.budget import AutoWorkers

    return isinstance(given, AutoWorkers)


class TunedAttribute:
    """Descriptor of an attribute that the loader may choose.

    The instance's dictionary holds what was given, so a copy of the loader, or one that is recreated from its
    attributes, chooses again. Reading the attribute gives the number that is in force.

    Args:
        part: the part of the tuner's choice.
    """

    def __init__(self, part: str) -> None:
        self._part = part

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, loader: object, owner: type | None = None) -> Any:
        if loader is None:
            return self
        try:
            given = vars(loader)[self._name]
        except KeyError:
            raise AttributeError(f"{type(loader).__name__!r} object has no attribute {self._name!r}") from None
        tuner: Tuner | None = vars(loader).get("_tuner")
        chosen = tuner is not None and _is_auto(vars(loader).get("num_workers"))
        if not chosen or (given is not None and not _is_auto(given)):
            return given
        return getattr(tuner.choice, self._part)  # type: ignore[union-attr]

    def __set__(self, loader: object, value: object) -> None:
        vars(loader)[self._name] = value


class TunedAttributes:
    """Mixed into the loader.

    Attributes:
        num_workers: number of native threads, or of torch's workers, now.
        prefetch_factor: batches in flight beyond the one in use, now.
    """

    num_workers: int = TunedAttribute("threads")  # type: ignore[assignment]
    prefetch_factor: int | None = TunedAttribute("depth")  # type: ignore[assignment]
    _tuner: Tuner | None = None

    def _remember(self, num_workers: object, prefetch_factor: int | None) -> None:
        """Stores the arguments where the loader chooses; torch's constructor has stored numbers."""
        if self._tuner is not None:
            from headrace._loading.autotune.budget import AutoWorkers

            vars(self).update(num_workers=AutoWorkers.of(num_workers), prefetch_factor=prefetch_factor)

    @property
    def _active_tuner(self) -> Tuner | None:
        """What chooses the numbers; None if they are given."""
        return self._tuner if self._tuner is not None and _is_auto(vars(self).get("num_workers")) else None


def tuner_of(num_workers: object, prefetch_factor: int | None, cores: Collection[int], way: str) -> Tuner | None:
    """Returns what chooses the numbers of a loader; None if `num_workers` is given.

    Args:
        num_workers, prefetch_factor: the loader's arguments.
        cores: that its threads are bound to; none: any.
        way: of the batches to their device. Memory of a GPU's batches is allocated for a fixed depth.
    """
    if type(num_workers) is int:
        return None
    from headrace._loading.autotune.budget import AutoWorkers, budget_of
    from headrace._loading.autotune.tuner import FIRST_DEPTH, Tuner

    auto = AutoWorkers.of(num_workers)
    if auto is None:
        return None
    fixed = FIRST_DEPTH if way == "fused" and prefetch_factor is None else prefetch_factor
    return Tuner(functools.partial(budget_of, auto, tuple(cores)), fixed)


def initial_workers(num_workers: object, tuner: Tuner | None) -> Any:
    """Returns what torch's constructor gets for `num_workers`."""
    return num_workers if tuner is None else tuner.choice.threads
