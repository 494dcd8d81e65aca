"""Finds what the Python steps of a loader keep from one sample to the next, and whether two of them share it.

Threads take samples in an order that depends on their timing, and each has copies of the steps. So steps whose results
depend on their earlier calls are called where torch would call them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import FunctionType, ModuleType

from headrace._lowering.python_steps.side_effects import Changes
from headrace._lowering.python_steps.step_copies import find_copied
from headrace._lowering.python_steps.value_sets import Unclear
from headrace._recipe.draws.step_generators import GENERATORS, generators_in_step
from headrace._recipe.draws.transform_reseeding import reseeded_objects


class Kept:
    """What calls of some functions keep.

    Args:
        functions: the steps, the functions of labels and the collate_fn of one loader.
    """

    def __init__(self, functions: Sequence[object]) -> None:
        self._functions = list(functions)
        self._changes: list[Changes] = []
        self._unclear: list[str] = []
        for one in functions:
            changes, unclear = Changes(), ""
            try:
                changes.record_call(one)
            except Unclear as error:
                unclear = str(error)
            self._changes.append(changes)
            self._unclear.append(unclear)
        self._read = set().union(*(one.read for one in self._changes)) if functions else set()
        self._reads_all = any(one.reads_all for one in self._changes)

    def _list_changes(self, number: int) -> list[tuple[object, str]]:
        """Returns (object or None, what is done to it) for each change that a call may see.

        An attribute that is stored and never read is none: each call only leaves it.
        """
        changes = self._changes[number]
        stored = [
            (
                held,
                f"changes its {name!r}"
                if held is self._functions[number]
                else f"changes {name!r} of {_describe_kind(held)}",
            )
            for held, name in changes.stored
            if self._reads_all or name in self._read
        ]
        outside = set(changes.generators) - {id(one) for one in generators_in_step(self._functions[number])}
        drawn = [
            (changes.generators[one], f"draws from a {type(changes.generators[one]).__name__} outside of it")
            for one in outside
        ]
        seeded = {id(one) for one in reseeded_objects(self._functions[number])} if changes.seedables else set()
        unseeded = [
            (one, f"draws from the generators of {_describe_kind(one)} that is out of reach for seeds")
            for key, one in changes.seedables.items()
            if key not in seeded
        ]
        return [*stored, *changes.found, *drawn, *unseeded]

    def state(self, numbers: Sequence[int]) -> str:
        """Returns why results of these functions may depend on their earlier calls, as a clause; "" if they do not."""
        for number in numbers:
            if changed := self._list_changes(number):
                return f"{_name_function(self._functions[number])} {changed[0][1]}"
            if self._unclear[number]:
                return f"{_name_function(self._functions[number])} {self._unclear[number]}, so it may keep a state"
        return ""

    def reaches_out(self) -> bool:
        """Whether calls change an object that copies of the functions share: a class, a global, a default argument."""
        for number, function in enumerate(self._functions):
            changed = [held for held, _ in self._list_changes(number) if held is not None]
            if any(isinstance(held, (type, ModuleType, FunctionType, *GENERATORS)) for held in changed):
                return True
            copied: dict[int, object] | None = None
            with suppress(Exception):  # it cannot be copied, which is another refusal
                copied = find_copied(function) if changed else None
            if copied is not None and any(id(held) not in copied for held in changed):
                return True
        return False

    def changes_anything(self) -> bool:
        """Whether calls may change an object, also one that they never read."""
        return any(one.found or one.stored for one in self._changes) or any(self._unclear)

    def generators(self, numbers: Sequence[int]) -> str:
        """Returns a clause about a function that draws from a generator in its attributes; "" if none does."""
        for number in numbers:
            for held in self._changes[number].generators.values():
                return f"{_name_function(self._functions[number])} draws from a {type(held).__name__} that it holds"
        return ""

    def draws(self, number: int) -> bool:
        """Whether a function may draw from torch's default generator."""
        return self._changes[number].draws

    def describe_sharing(self, some: Sequence[int], others: Sequence[int]) -> str:
        """Returns how calls of `some` and of `others` may see each other's changes, as a clause; "" if they do not."""
        for first in some:
            for second in others:
                both = f"{_name_function(self._functions[first])} and {_name_function(self._functions[second])}"
                common = self._changes[first].touched.keys() & self._changes[second].touched.keys()
                for changing in (first, second):
                    drawn = self._changes[changing].generators.values()
                    for held, what in [
                        *self._list_changes(changing),
                        *((one, "draws from a generator") for one in drawn),
                    ]:
                        other = self._changes[second if changing == first else first]
                        if id(held) in other.touched or id(held) in other.generators or (held is None and common):
                            return f"{both} share an object: {_name_function(self._functions[changing])} {what}"
                unclear = self._unclear[first] or self._unclear[second]
                if unclear and common:
                    return f"{both} share an object, and one {unclear}"
        return ""


def _name_function(function: object) -> str:
    named: str = getattr(function, "__qualname__", None) or type(function).__qualname__
    return named


def _describe_kind(held: object) -> str:
    return getattr(held, "__qualname__", f"a {type(held).__qualname__}")
