"""Random generators that a step holds: seeded for each sample, so that batches do not depend on who calls the step."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol, TypeGuard

import numpy as np
import torch

GENERATORS = (random.Random, np.random.RandomState, np.random.Generator, np.random.BitGenerator, torch.Generator)
Generator = random.Random | np.random.RandomState | np.random.Generator | np.random.BitGenerator | torch.Generator
_MOST = 1000  # objects to look at
_here = threading.local()


class Seedable(Protocol):
    """An object with generators of its own, such as a transform of albumentations."""

    def set_random_seed(self, seed: int) -> object: ...


def generators_in_step(step: object) -> tuple[Generator, ...]:
    """Returns the generators in a step's attributes and in theirs, of which each copy of the step has its own.

    Objects with ``set_random_seed``, which is called for each sample, are not looked into.
    """
    return tuple(one for one in _objects_in(step) if isinstance(one, GENERATORS))


def seedables_in_step(step: object) -> tuple[Seedable, ...]:
    """Returns the objects with ``set_random_seed`` in the same places; of those within another one, that one."""
    return tuple(one for one in _objects_in(step) if is_seedable(one))


def is_seedable(value: object) -> TypeGuard[Seedable]:
    """Whether an object's generators can be seeded by ``set_random_seed``, as those of albumentations' transforms."""
    return not isinstance(value, (type, ModuleType)) and callable(getattr(type(value), "set_random_seed", None))


def _objects_in(step: object) -> Iterator[object]:
    seen: dict[int, object] = {}
    waiting = [step]
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (type, ModuleType, FunctionType, str, bytes, torch.Tensor, np.ndarray)):
            continue
        seen[id(one)] = one
        yield one
        if isinstance(one, GENERATORS) or is_seedable(one):
            continue
        if isinstance(one, (list, tuple, set, frozenset)):
            waiting.extend(one)
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (MethodType, BuiltinFunctionType)):
            waiting.append(one.__self__)
        elif isinstance(one, partial):
            waiting.extend((one.func, one.args, one.keywords))
        else:
            waiting.append(getattr(one, "__dict__", {}))
            waiting.extend(_read_slots(one))


def _read_slots(one: object) -> Iterator[object]:
    for cls in type(one).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(one, name):
                yield getattr(one, name)


@contextmanager
def seeded_for_this_sample(generators: Sequence[Generator]) -> Iterator[None]:
    """Seeds generators from torch's random numbers of the sample, and restores their states at exit.

    Does nothing inside of `leave_unseeded`.
    """
    if not generators or getattr(_here, "left_alone", False):
        yield
        return
    before = [_state_of_generator(one) for one in generators]
    for one in generators:
        _seed_generator(one, int(torch.randint(2**31, (), device="cpu")))
    try:
        yield
    finally:
        for one, state in zip(generators, before, strict=True):
            _restore_generator(one, state)


@contextmanager
def leave_unseeded() -> Iterator[None]:
    """Inside, steps draw from the generators that they hold as they are, in this thread."""
    before = getattr(_here, "left_alone", False)
    _here.left_alone = True
    try:
        yield
    finally:
        _here.left_alone = before


def _state_of_generator(one: Generator) -> object:
    if isinstance(one, random.Random):
        return one.getstate()
    if isinstance(one, np.random.RandomState):
        return one.get_state()
    if isinstance(one, torch.Generator):
        return one.get_state()
    return _bit_generator_of(one).state


def _restore_generator(one: Generator, state: Any) -> None:
    if isinstance(one, random.Random):
        one.setstate(state)
    elif isinstance(one, (np.random.RandomState, torch.Generator)):
        one.set_state(state)
    else:
        _bit_generator_of(one).state = state


def _seed_generator(one: Generator, seed: int) -> None:
    if isinstance(one, (random.Random, np.random.RandomState)):
        one.seed(seed)
    elif isinstance(one, torch.Generator):
        one.manual_seed(seed)
    else:
        bits = _bit_generator_of(one)
        bits.state = type(bits)(seed).state


def _bit_generator_of(one: np.random.Generator | np.random.BitGenerator) -> Any:
    return one.bit_generator if isinstance(one, np.random.Generator) else one
