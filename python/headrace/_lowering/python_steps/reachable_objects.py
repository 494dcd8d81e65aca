"""The objects that the calls of a step reach, and what is done to them: attributes, items and changes of values."""

from __future__ import annotations

import functools
import inspect
import io
import random
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

from headrace._lowering.python_steps.abstract_frames import Frames
from headrace._lowering.python_steps.bytecode_analysis import PLAIN, inspectable, is_known
from headrace._lowering.python_steps.known_methods import DRAWING, READING_ALL
from headrace._lowering.python_steps.origin_kinds import (
    ARRAYS,
    ELEMENTS,
    HELD,
    Bound,
    Member,
    New,
    Seen,
    Super,
    find_member,
    has_attributes,
    is_code,
    is_free,
    namespaces,
    own_instance,
)
from headrace._lowering.python_steps.value_sets import FREE, Frame, Value
from headrace._recipe.draws.step_generators import GENERATORS

_PROCESSES = tuple(id(one) for one in (getattr(random, "_inst", None), np.random.mtrand._rand, torch.default_generator))
_MOST_ELEMENTS = 200


class Reached(Frames):
    """What calls may change.

    Attributes:
        found: (the object, or None if it is not known; what is done to it) for each change.
        stored: (object, attribute) of each assignment.
        read: names of the attributes that are read.
        reads_all: whether attributes may be read whose names are not in the code.
        generators: random generators that are no generators of the process, by id.
        seedables: objects with ``set_random_seed`` that are called, by id.
        touched: mutable objects that the calls reach, by id.
        draws: whether the calls may draw from torch's default generator.
        modules: modules of known classes that are called.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[object, str]] = []
        self.stored: list[tuple[object, str]] = []
        self.read: set[str] = set()
        self.reads_all = False
        self.generators: dict[int, object] = {}
        self.seedables: dict[int, object] = {}
        self.touched: dict[int, object] = {}
        self.draws = False
        self.modules: list[torch.nn.Module] = []
        self._alive: list[object] = []  # an id may be reused after an object's death
        self._put = FREE  # what is put into new containers

    def call_one(self, one: object, arguments: list[Value], names: tuple[str, ...], frame: Frame | None) -> Value:
        """Returns what a call of one object may return."""
        raise NotImplementedError

    # ---- values ------------------------------------------------------------------------------------------------------

    def origin(self, found: object) -> Value:
        if isinstance(found, (*PLAIN, bool)) or found is NotImplemented:
            return FREE
        if isinstance(found, (tuple, frozenset)) and all(not self.origin(one) for one in found):
            return FREE
        self._alive.append(found)
        if isinstance(found, GENERATORS):
            if id(found) not in _PROCESSES:
                self.generators[id(found)] = found
            return frozenset([Seen(found)])
        if not isinstance(found, (ModuleType, FunctionType, BuiltinFunctionType, type)):
            self.touched[id(found)] = found
            if isinstance(found, io.IOBase) or (hasattr(type(found), "__next__") and not own_instance(found)):
                self.found.append((found, f"goes on in a {type(found).__name__}"))
        return frozenset([Seen(found)])

    def attribute(self, value: Value, name: str, frame: Frame | None) -> Value:
        self.read.add(name)
        self.reads_all |= name in READING_ALL
        self.draws |= name in DRAWING
        if not value:
            return frozenset([Member(None, name)])
        return FREE.union(*(self._attribute(one, name) for one in value))

    def _attribute(self, one: object, name: str) -> Value:
        if one is HELD or isinstance(one, Member):
            return frozenset([Member(one.of if isinstance(one, Member) else one, name)])
        if isinstance(one, Super):
            mro = type(one.of).__mro__ if not isinstance(one.of, type) else one.of.__mro__
            after = mro[mro.index(one.cls) + 1 :] if one.cls in mro else mro
            found = next((vars(cls)[name] for cls in after if name in vars(cls)), None)
            return FREE if found is None else self._member_as_attribute(found, Seen(one.of), name)
        if isinstance(one, New):
            found = find_member(one.cls, name)
            return one.holds if found is None else self._member_as_attribute(found, one, name) | one.holds
        if not isinstance(one, Seen):
            return FREE
        held = one.one
        if isinstance(held, ModuleType):
            return self.origin(vars(held)[name]) if name in vars(held) else self._value_of_module_getattr(held, name)
        if isinstance(held, type):
            found = find_member(held, name)
            return FREE if found is None else self._member_as_attribute(found, one, name)
        if isinstance(held, (*ELEMENTS, *ARRAYS, *GENERATORS)):
            return frozenset([Member(one, name)])
        for names in namespaces(held):
            if name in names:
                return self.origin(names[name])
        found = find_member(type(held), name)
        if found is not None:
            return self._member_as_attribute(found, one, name)
        return frozenset([HELD]) if not inspectable(held) else FREE

    def _value_of_module_getattr(self, module: ModuleType, name: str) -> Value:
        """Returns what a module's own ``__getattr__`` gives, if the module is of a known package."""
        return self.origin(getattr(module, name, None)) if is_known(module.__name__) else FREE

    def _member_as_attribute(self, found: object, one: Any, name: str) -> Value:
        """Returns what the member of a class is as an attribute of `one`, an instance or the class."""
        of_class = isinstance(one, Seen) and isinstance(one.one, type)
        if isinstance(found, FunctionType):
            return self.origin(found) if of_class else frozenset([Bound(found, one)])
        if isinstance(found, staticmethod):
            return self.origin(found.__func__)
        if isinstance(found, classmethod):
            cls = one.cls if isinstance(one, New) else one.one if of_class else type(one.one)
            return frozenset([Bound(found.__func__, Seen(cls))])
        if isinstance(found, property):
            return FREE if found.fget is None else self.call_one(Seen(found.fget), [frozenset([one])], (), None)
        if isinstance(found, functools.cached_property):
            return self.call_one(Seen(found.func), [frozenset([one])], (), None)
        if inspect.isdatadescriptor(found) and isinstance(one, Seen):  # a slot, or an attribute of a compiled class
            try:
                return self.origin(getattr(one.one, name))
            except Exception:  # not set, or it is computed and fails
                return FREE
        if callable(found) and not of_class and not isinstance(found, type) and type(found).__name__ != "partial":
            if type(found).__name__ == "_lru_cache_wrapper":
                return frozenset([Bound(found, one)])
            return frozenset([Member(one, name)])
        return self.origin(found)

    def item(self, value: Value) -> Value:
        if not value:
            return self._put
        return FREE.union(*(self._item(one) for one in value))

    def _item(self, one: object) -> Value:
        if isinstance(one, Member):
            return self._put if one.of is None else self._item(one.of)
        if isinstance(one, New):
            return one.holds
        if not isinstance(one, Seen):
            return frozenset([HELD]) if one is HELD else FREE
        held = one.one
        if isinstance(held, ELEMENTS):
            self.touched[id(held)] = held
            values = [*held, *held.values()] if isinstance(held, dict) else list(held)
            some = FREE.union(*map(self.origin, values[:_MOST_ELEMENTS]))
            return some | {HELD} if some and len(values) > _MOST_ELEMENTS else some
        if isinstance(held, (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)):
            return FREE.union(*map(self.origin, held._modules.values()))
        if isinstance(held, ARRAYS):
            return frozenset([one])
        if own_instance(held):
            made = FREE
            for name in ("__getitem__", "__iter__", "__next__"):
                if isinstance(find_member(type(held), name), FunctionType):
                    made |= self.call_one(Bound(find_member(type(held), name), one), [FREE], (), None)
            return made
        return FREE if isinstance(held, (type, ModuleType, FunctionType)) else frozenset([HELD])

    def operate(self, name: str, left: Value, right: Value, in_place: bool) -> Value:
        if not in_place:
            return FREE
        self.change(left, "")
        return left

    def change(self, target: Value, what: str) -> None:
        for one in target:
            held = one.of if isinstance(one, Member) else one
            if isinstance(held, Seen) and _is_machinery(held.one):
                continue
            if held is HELD:
                self.found.append((None, "changes an object that it holds"))
            elif isinstance(held, Seen) and what and has_attributes(held.one):
                self.stored.append((held.one, what))
            elif isinstance(held, Seen) and not isinstance(held.one, PLAIN):
                self.found.append((held.one, f"changes a {type(held.one).__name__} that it holds"))

    def store(self, target: Value, value: Value) -> None:
        if all(isinstance(one, Member) and one.of is None for one in target):
            self._put |= frozenset(one for one in value if not is_code(one) and not is_free(one))

    def change_name(self, name: str) -> None:
        self.found.append((None, f"changes the variable {name}"))


def _is_machinery(held: object) -> bool:
    """Whether an object is a lock, an event or a logger, which hold nothing of a sample."""
    cls = type(held)
    return cls.__module__ in ("threading", "_thread", "logging", "weakref", "_weakref") and cls.__name__ != "_local"
