"""Recognises functions that apply transforms to each of several images and stack the results.

The idiom is that of torchvision's documentation: ``lambda crops: torch.stack([ToTensor()(crop) for crop in crops])``.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from headrace._base.types import Function
from headrace._lowering.function_idioms import (
    ATTRIBUTE,
    CALLS,
    CONSTANT,
    NAMED,
    PASSED_OVER,
    is_without_defaults,
    takes_arguments,
    value_of_name,
)
from headrace._lowering.transform_library import class_origin

_PASSED_OVER = PASSED_OVER | {"LOAD_CLOSURE", "BUILD_TUPLE"}
_FAST = frozenset(("LOAD_FAST", "LOAD_FAST_BORROW"))  # the second from Python 3.14


def functions_stacked_by(function: object) -> list[Function] | None:
    """Returns the objects that a function calls one after the other on each element; None if it does anything else.

    Args:
        function: anything. A function is recognised if it is ``return torch.stack([f(crop) for crop in crops])``, where
            ``f(crop)`` may be several calls around each other. What is called has a name, or is an attribute of a named
            module, or is made there by a call of a known transform's class.
    """
    if not is_without_defaults(function):
        return None
    ours, theirs = _split_code(_recognised_idiom.__code__), _split_code(function.__code__)
    if ours is None or theirs is None or theirs.frame != ours.frame:
        return None
    if theirs.names != ("torch", "stack") or value_of_name(function, "torch") is not torch:
        return None
    return _follow_element(function, theirs)


def _recognised_idiom(crops: Any) -> torch.Tensor:
    return torch.stack([_recognised_idiom(crop) for crop in crops])


class _Parts(NamedTuple):
    """A function around a comprehension: the operations outside of its element, and those of the element."""

    frame: tuple[str, ...]
    names: tuple[str, ...]
    variable: str
    element: tuple[dis.Instruction, ...]


@functools.lru_cache(maxsize=64)
def _split_code(code: types.CodeType) -> _Parts | None:
    if not takes_arguments(code, 1):
        return None
    outer = list(_operations(code))
    inner = [one.argval for one in outer if isinstance(one.argval, types.CodeType)]  # up to Python 3.11
    loop = list(_operations(inner[0])) if len(inner) == 1 else outer
    kinds = [one.opname for one in loop]
    if len(inner) > 1 or "FOR_ITER" not in kinds or kinds.count("LIST_APPEND") != 1:
        return None
    begin, end = kinds.index("FOR_ITER") + 2, kinds.index("LIST_APPEND")
    if begin >= end or kinds[begin - 1] != "STORE_FAST":
        return None
    around = [*outer, *loop[:begin], *loop[end:]] if inner else [*loop[:begin], *loop[end:]]
    return _Parts(
        tuple(map(_normalised_opname, around)),
        tuple(one.argval for one in around if one.opname in NAMED | ATTRIBUTE),
        loop[begin - 1].argval,
        tuple(loop[begin:end]),
    )


def _normalised_opname(one: dis.Instruction) -> str:
    """The name of an operation. A compiler that sees the import of a module reads its functions as attributes, and
    otherwise as methods."""
    return "LOAD_ATTR" if one.opname in ATTRIBUTE else "CALL" if one.opname in CALLS else one.opname


def _operations(code: types.CodeType) -> Iterator[dis.Instruction]:
    instructions = list(dis.get_instructions(code))
    made_of = {at for at, one in enumerate(instructions) if one.opname == "BUILD_TUPLE"}
    for at, one in enumerate(instructions):
        closes = at in made_of and instructions[at - 1].opname == "LOAD_CLOSURE"
        if one.opname not in _PASSED_OVER or (one.opname == "BUILD_TUPLE" and not closes):
            yield one


class _Element:
    """A crop after calls."""

    def __init__(self, called: tuple[Function, ...] = ()) -> None:
        self.called = called


def _follow_element(function: object, parts: _Parts) -> list[Function] | None:
    """Follows the operations of the element on a stack of values."""
    stack: list[object] = []
    try:
        for one in parts.element:
            if not _follow_instruction(one, stack, function, parts.variable):
                return None
    except (IndexError, TypeError, ValueError):  # arguments that the class refuses, among others
        return None
    if len(stack) != 1 or not isinstance(stack[0], _Element):
        return None
    return list(stack[0].called) or None


def _follow_instruction(one: dis.Instruction, stack: list[Any], function: object, variable: str) -> bool:
    """Does one operation; returns whether it is known."""
    if one.opname in NAMED:
        stack.append(value_of_name(function, one.argval))
    elif one.opname in _FAST and one.argval == variable:
        stack.append(_Element())
    elif one.opname in ATTRIBUTE and isinstance(stack[-1], types.ModuleType):
        stack.append(getattr(stack.pop(), one.argval, None))
    elif one.opname in CONSTANT and not isinstance(one.argval, types.CodeType):
        stack.append(one.argval)
    elif one.opname in ("BUILD_LIST", "BUILD_TUPLE"):
        made = [stack.pop() for _ in range(one.arg or 0)][::-1]
        stack.append(made if one.opname == "BUILD_LIST" else tuple(made))
    elif one.opname == "LIST_EXTEND" and one.arg == 1:
        more = stack.pop()
        stack[-1].extend(more)
    elif one.opname in CALLS:
        arguments = [stack.pop() for _ in range(one.arg or 0)][::-1]
        return _follow_call(stack, stack.pop(), arguments)
    else:
        return False
    return True


def _follow_call(stack: list[object], function: Function, arguments: list[object]) -> bool:
    """Does what calling `function` does to the stack of the lambda's code. Returns False where that is not known."""
    if len(arguments) == 1 and isinstance(arguments[0], _Element) and not isinstance(function, (type, _Element)):
        stack.append(_Element((*arguments[0].called, function)))
        return True
    makes = isinstance(function, type) and class_origin(function) is not None
    if not makes or any(isinstance(one, _Element) for one in arguments):
        return False
    stack.append(function(*arguments))
    return True
