"""Values, frames and states of `abstract_frames`, which executes a function's code on sets of objects.

A value is a frozenset of origins: objects that are known, or marks of a subclass of `Frames`. The empty set is a value
that nothing else refers to: a new object, a number, the sample itself.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from types import CodeType

VERSION = sys.version_info[:2]
Value = frozenset[object]
FREE: Value = frozenset()


class Unclear(Exception):
    """The code does something that this analysis does not follow."""


@dataclass(eq=False)
class Inner:
    """A function that is defined inside another one."""

    code: CodeType
    frame: Frame
    defaults: Value


@dataclass(eq=False)
class Frame:
    """A call of a function.

    Attributes:
        named: the function's globals.
        cells: values of the variables that functions share, whatever the path.
        first: the first argument, `self` of a method.
        free: names of the variables that belong to a function around this one which has returned.
    """

    code: CodeType
    named: dict[str, object]
    local: dict[str, Value]
    cells: dict[str, Value]
    first: Value
    free: frozenset[str]
    returned: Value = FREE
    changed: bool = False
    around: Frame | None = None

    def fill(self, name: str, value: Value) -> None:
        """Adds to what a shared variable may be."""
        frame: Frame | None = self
        while frame is not None and name not in frame.cells:
            frame = frame.around
        frame = frame or self
        before = frame.cells.get(name, FREE)
        if not value <= before:
            frame.cells[name] = before | value
            frame.changed = self.changed = True

    def cell(self, name: str) -> Value | None:
        """Returns what a shared variable may be; None if it is none."""
        if name in self.cells or self.around is None:
            return self.cells.get(name)
        return self.around.cell(name)


@dataclass
class FrameState:
    """What is on the stack, and in the local variables, before an instruction."""

    stack: list[Value | None]  # None: the NULL of a call
    local: dict[str, Value]

    def join(self, other: FrameState) -> bool:
        """Adds what the other may be; returns whether anything was added."""
        if len(self.stack) != len(other.stack):
            raise Unclear("paths with stacks of different depths")
        grown = False
        for number, (mine, theirs) in enumerate(zip(self.stack, other.stack, strict=True)):
            both = (mine or FREE) | (theirs or FREE)
            if (mine is None) != (theirs is None) or both != (mine or FREE):
                grown = grown or both != (mine or FREE)
                self.stack[number] = None if mine is None and theirs is None else both
        for name, value in other.local.items():
            both = self.local.get(name, FREE) | value
            if both != self.local.get(name, FREE):
                self.local[name], grown = both, True
        return grown


def pop(stack: list[Value | None]) -> Value:
    """Takes the uppermost value off a stack."""
    return stack.pop() or FREE


def bound_arguments(
    code: CodeType, arguments: list[Value], names: tuple[str, ...], defaults: Value
) -> dict[str, Value]:
    """Returns a function's parameters with what they may be."""
    count = code.co_argcount + code.co_kwonlyargcount
    parameters = code.co_varnames[:count]
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    rest = code.co_varnames[count : count + flags]
    everything = FREE.union(*arguments)
    if "**" in names:
        # `self` is given apart from what is spread.
        first = {parameters[0]: arguments[0]} if parameters and len(arguments) > 1 else {}
        spread = everything | defaults if len(arguments) < 2 else FREE.union(*arguments[1:]) | defaults
        return {**dict.fromkeys((*parameters, *rest), spread), **first}
    local = dict.fromkeys(parameters, defaults) | dict.fromkeys(rest, everything)
    positional, named = arguments[: len(arguments) - len(names)], arguments[len(arguments) - len(names) :]
    local.update(zip(code.co_varnames[: code.co_argcount], positional, strict=False))
    local.update({name: value for name, value in zip(names, named, strict=True) if name in local})
    return local
