"""Recognises what calls a Compose of albumentations on the array of an image.

It is a function, or the ``__call__`` of a class, whose code does ``return compose(image=np.array(image))["image"]``,
in one line or in several.
"""

from __future__ import annotations

import dis
import sys
import types
from typing import Any

import numpy as np

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

_ARRAYS = ("array", "asarray")
_CALLS = CALLS | {"CALL_FUNCTION_KW", "CALL_KW"}  # with keywords


class _Image:
    """The image that the function is called with."""


class _Self:
    """The object whose ``__call__`` it is."""


class _Array:
    """The array of the image."""


class _Sample:
    """What a Compose makes of ``image=`` the array."""

    def __init__(self, compose: object) -> None:
        self.compose = compose


class _Result:
    """The image of a sample."""

    def __init__(self, compose: object) -> None:
        self.compose = compose


class _Unknown(Exception):
    """The code does anything else."""


def is_of_albumentations(value: object, name: str) -> bool:
    """Whether an object's class is albumentations' own of this name, of the package or of its module ``pytorch``."""
    homes = (sys.modules.get(home) for home in ("albumentations", "albumentations.pytorch"))
    return any(getattr(home, name, None) is type(value) for home in homes if home is not None)


def wrapped_compose(transform: object) -> Any:
    """Returns the Compose of albumentations that a transform calls on the array of an image, or None.

    Args:
        transform: anything. It is recognised if it is headrace's ``AlbumentationsTransform``, or if its code is that
            of ``return compose(image=np.array(image))["image"]``, where `compose` is a name, or an attribute of the
            object; the array, the sample and the image in it may be variables.
    """
    if "albumentations" not in sys.modules:
        return None
    if class_origin(type(transform)) == ("headrace", "AlbumentationsTransform"):
        return transform.compose  # type: ignore[attr-defined]
    function, owner = transform, None
    if type(function) is not types.FunctionType:
        if hasattr(type(transform), "forward") or "__getattr__" in dir(type(transform)):
            return None
        function, owner = vars(type(transform)).get("__call__"), transform
    if not is_without_defaults(function) or not takes_arguments(function.__code__, 1 if owner is None else 2):
        return None
    try:
        made = _Reader(function, owner).read()
    except (_Unknown, IndexError, TypeError):  # the last: an object without attributes
        return None
    return made.compose if isinstance(made, _Result) else None


class _Reader:
    """Follows the code of a function on a stack of values."""

    def __init__(self, function: types.FunctionType, owner: object) -> None:
        names = function.__code__.co_varnames
        self._function, self._owner = function, owner
        self._variables: dict[str, object] = (
            {names[0]: _Image()}
            if owner is None
            else {
                names[0]: _Self(),
                names[1]: _Image(),
            }
        )
        self._stack: list[object] = []
        self._keywords: tuple[str, ...] = ()

    def read(self) -> object:
        """Returns what the function returns. Raises _Unknown, or IndexError."""
        for one in dis.get_instructions(self._function):
            if one.opname == "RETURN_VALUE":
                return self._stack.pop()
            if one.opname not in PASSED_OVER:
                self._follow(one)
        raise _Unknown

    def _follow(self, one: dis.Instruction) -> None:
        op, stack = one.opname, self._stack
        if op in NAMED:
            stack.append(value_of_name(self._function, one.argval))
        elif op.startswith("LOAD_FAST"):
            names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
            stack.extend(self._variable(name) for name in names)
        elif op == "STORE_FAST":
            self._variables[one.argval] = stack.pop()
        elif op == "STORE_FAST_LOAD_FAST":
            self._variables[one.argval[0]] = stack.pop()
            stack.append(self._variable(one.argval[1]))
        elif op in ATTRIBUTE:
            stack.append(self._attribute(stack.pop(), one.argval))
        elif op in CONSTANT:
            stack.append(one.argval)
        elif op == "KW_NAMES":
            self._keywords = self._function.__code__.co_consts[one.arg or 0]  # Python 3.11 gives no argval
        elif op in _CALLS:
            keywords = stack.pop() if op.endswith("_KW") else self._keywords
            self._keywords = ()
            arguments = [stack.pop() for _ in range(one.arg or 0)]
            stack.append(_call(stack.pop(), arguments, keywords))
        elif op == "BINARY_SUBSCR" or (op == "BINARY_OP" and "[]" in one.argrepr):
            key, sample = stack.pop(), stack.pop()
            if not isinstance(sample, _Sample) or key != "image":
                raise _Unknown
            stack.append(_Result(sample.compose))
        else:
            raise _Unknown

    def _variable(self, name: str) -> object:
        if name not in self._variables:
            raise _Unknown
        return self._variables[name]

    def _attribute(self, value: object, name: str) -> object:
        if isinstance(value, _Self) and name in vars(self._owner) and not hasattr(type(self._owner), name):
            return vars(self._owner)[name]
        if value is np and name in _ARRAYS:
            return getattr(np, name)
        raise _Unknown


def _call(function: object, arguments: list[object], keywords: object) -> object:
    """Returns what a call gives; `arguments` has the last one first."""
    if len(arguments) != 1:
        raise _Unknown
    if any(function is getattr(np, name) for name in _ARRAYS) and not keywords and isinstance(arguments[0], _Image):
        return _Array()
    if is_of_albumentations(function, "Compose") and keywords == ("image",) and isinstance(arguments[0], _Array):
        return _Sample(function)
    raise _Unknown
