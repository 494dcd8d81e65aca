"""The kinds of origins that a value (`value_sets.Value`) can hold, for `side_effects`: an object that a step reaches, a
method of one, a new object that holds it."""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType

import numpy as np
import torch

from headrace._lowering.python_steps.bytecode_analysis import is_known
from headrace._lowering.python_steps.value_sets import Inner, Value

ELEMENTS = (list, tuple, set, frozenset, dict, deque)
ARRAYS = (np.ndarray, torch.Tensor, bytearray)


class _Held:
    def __repr__(self) -> str:
        return "HELD"


#: Something inside of what a step reaches.
HELD = _Held()


@dataclass(frozen=True, eq=False)
class Seen:
    """An object that exists."""

    one: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and other.one is self.one

    def __hash__(self) -> int:
        return id(self.one)


@dataclass(frozen=True)
class Bound:
    """A function with its `self`."""

    function: object
    of: object


@dataclass(frozen=True)
class Member:
    """A method, or another attribute, of an object of a compiled class; `of` is None for one of a FREE value."""

    of: object
    name: str


@dataclass(frozen=True)
class New:
    """An object of the user's class that a call makes; it may hold these values."""

    cls: type
    holds: Value


@dataclass(frozen=True, eq=False)
class Super:
    """What ``super()`` returns for an object in a method of `cls`."""

    of: object
    cls: type


def find_member(cls: type, name: str) -> object:
    """Returns the member of a class, without binding it; None without one."""
    return next((vars(one)[name] for one in cls.__mro__ if name in vars(one)), None)


def is_own_class(cls: type) -> bool:
    """Whether a class is written in Python, outside of the known packages."""
    return not is_known(cls.__module__) and bool(cls.__flags__ & (1 << 9))


def own_instance(held: object) -> bool:
    """Whether an object is of a class that is written in Python, outside of the known packages."""
    return not isinstance(held, (type, ModuleType)) and is_own_class(type(held))


def namespaces(held: object) -> list[dict[str, object]]:
    """Returns the dicts that an object's attributes are in."""
    names = getattr(held, "__dict__", None)
    found = [names] if isinstance(names, dict) else []
    if isinstance(held, torch.nn.Module):
        found += [held._parameters, held._buffers, held._modules]
    return found


def has_attributes(held: object) -> bool:
    """Whether an assignment to an attribute of an object is one, and not to an item of a container."""
    return not isinstance(held, (*ELEMENTS, *ARRAYS, type, ModuleType))


def is_free(one: object) -> bool:
    """Whether an origin is an attribute or method of a FREE value, so of nothing that a step reaches."""
    return isinstance(one, Member) and one.of is None


def is_code(one: object) -> bool:
    """Whether a value is a function of the user's, or an object that is called like one."""
    if isinstance(one, (Inner, Bound)):
        return True
    if isinstance(one, Seen):
        if isinstance(one.one, (FunctionType, MethodType)):
            return not is_known(one.one.__module__)
        return isinstance(one.one, functools.partial) or (
            isinstance(find_member(type(one.one), "__call__"), FunctionType) and own_instance(one.one)
        )
    return False
