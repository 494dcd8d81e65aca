"""Functions of other libraries whose code is replaced: a program may have copied them, or pickle them by name.

The function object, its name and its signature stay. Its new code has one line, which calls ours.
"""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from headrace._base.originals.originality import note_replaced_code
from headrace._base.types import Function
from headrace.pillow.recording.patches import is_own

_PLACE = "what is called"


class CodeReplacement:
    """One function.

    Args:
        module, name: where it is, a method as ``"Class.method"``; the module is never imported.
        version: returns what is called instead, given a function with the old code.
    """

    def __init__(self, module: str, name: str, version: Callable[[Function], Function]) -> None:
        self._module, self._name, self._version = module, name, version
        self._function: types.FunctionType | None = None
        self._before: types.CodeType | None = None
        self._after: types.CodeType | None = None

    def replace(self) -> bool:
        """Replaces the code, if the module has been imported and the function is the library's. Returns whether it
        is."""
        *of, name = self._name.split(".")
        holder: Any = sys.modules.get(self._module)
        for one in of:
            holder = getattr(holder, one, None)
        found = getattr(holder, name, None)
        if not isinstance(found, types.FunctionType) or not is_own(found, holder, name) or found.__closure__:
            return False
        if found is not self._function or found.__code__ not in (self._before, self._after):
            plain = types.FunctionType(found.__code__, found.__globals__, found.__name__, found.__defaults__)
            plain.__kwdefaults__ = found.__kwdefaults__
            self._function, self._before = found, found.__code__
            self._after = _code_that_calls(self._version(plain), found)
            note_replaced_code(self._after, found.__code__)
        found.__code__ = self._after  # type: ignore[assignment]
        return True

    def put_back(self) -> None:
        """Undoes `replace`, unless other code has replaced the code since."""
        if self._function is not None and self._function.__code__ is self._after and self._before is not None:
            self._function.__code__ = self._before


def _code_that_calls(called: Any, like: types.FunctionType) -> types.CodeType:
    """Returns code with the parameters of a function, which passes them on."""
    parameters, arguments = [], []
    only_names = False
    for name, one in inspect.signature(like).parameters.items():
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            parameters.append(f"**{name}")
            arguments.append(f"**{name}")
            continue
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not only_names:
            parameters.append("*")
            only_names = True
        parameters.append(name)
        arguments.append(f"{name}={name}" if only_names else name)
    text = f"def {like.__name__}({', '.join(parameters)}):\n    return {_PLACE!r}({', '.join(arguments)})\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a string is called, until it is replaced
        made = compile(text, like.__code__.co_filename, "exec")
    code = next(one for one in made.co_consts if isinstance(one, types.CodeType))
    constants = tuple(called if one == _PLACE else one for one in code.co_consts)
    return code.replace(co_consts=constants, co_firstlineno=like.__code__.co_firstlineno)
