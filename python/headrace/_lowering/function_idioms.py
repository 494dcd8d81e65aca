"""What modules share that recognise a function by its code, such as ``lambda crops: torch.stack([...])``."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, TypeGuard

#: Opcodes that differ between versions of Python, or with the place that a name comes from, and not in what is
#: computed.
PASSED_OVER = frozenset(("RESUME", "PUSH_NULL", "PRECALL", "CACHE", "COPY_FREE_VARS", "NOP", "MAKE_CELL"))
NAMED = frozenset(("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME"))
ATTRIBUTE = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
CALLS = frozenset(("CALL", "CALL_FUNCTION", "CALL_METHOD"))
CONSTANT = frozenset(("LOAD_CONST", "LOAD_SMALL_INT"))  # the second from Python 3.14

_FREE_ARGUMENTS = 0x2C  # *args, **kwargs, a generator


def is_without_defaults(function: object) -> TypeGuard[FunctionType]:
    """Whether an object is a function of Python, none of whose arguments has a default value."""
    return type(function) is FunctionType and not function.__defaults__ and not function.__kwdefaults__


def takes_arguments(code: CodeType, count: int) -> bool:
    """Whether code is that of a function of `count` positional arguments and no others, which is no generator."""
    return code.co_argcount == count and not code.co_kwonlyargcount and not code.co_flags & _FREE_ARGUMENTS


def value_of_name(function: Any, name: str) -> object:
    """Returns the value of a free or global name of a function; None without one."""
    free = function.__code__.co_freevars
    if name in free:
        try:
            return (function.__closure__ or ())[free.index(name)].cell_contents
        except ValueError:  # not filled yet
            return None
    return function.__globals__.get(name)
