"""Puts our versions of other libraries' functions in their places, and takes them away again.

Note [patched]: a program may have put functions of its own in these places, too, or in others whose work a native pass
does. Its functions are called. So only a library's own functions are replaced, and a native pass is taken only while
those that it stands for are the library's own.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from headrace._base.originals.originality import library_code
from headrace._base.types import Function

#: Makes our version of a function, given the one that is there.
Version: TypeAlias = Callable[[Function], Function]


@dataclass(frozen=True, eq=False)
class Place:
    """Where a function is. Two of them are never equal.

    Attributes:
        module: name of the module; it is never imported.
        find: returns what holds the function, a class, module or dict, given the module.
        name: of the function in it: an attribute or a key.
        version: returns ours, given the one that is there.
    """

    module: str
    find: Callable[[ModuleType], object]
    name: Any
    version: Version


def method(module: str, of: str, name: str, version: Version) -> Place:
    """The place of a method of a class."""
    return Place(module, lambda found: getattr(found, of, None), name, version)


def function(module: str, name: str, version: Version) -> Place:
    """The place of a function of a module."""
    return Place(module, lambda found: found, name, version)


def kernels_of(functional: str) -> Callable[[object], object]:
    """The dict in which torchvision v2 keeps a functional's kernels."""

    def find(module: object) -> object:
        registry = getattr(module, "_KERNEL_REGISTRY", {})
        return next((kernels for known, kernels in registry.items() if known.__name__ == functional), None)

    return find


class Replacements:
    """Functions that can be replaced together.

    Args:
        places: theirs.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._replaced: dict[Place, tuple[object, object, object]] = {}  # holder, the function before, ours
        self._versions: dict[Place, tuple[Function, Function]] = {}  # a function, our version to use again

    def replace(self) -> bool:
        """Replaces the functions of those modules that have been imported. Returns whether these are all."""
        for place in self._places:
            module = sys.modules.get(place.module)
            holder = None if module is None or place in self._replaced else place.find(module)
            if holder is None:
                continue
            before, (known, ours) = _read_place(holder, place.name), self._versions.get(place, (None, None))
            if known is None or known is not before:
                # A program that replaced ours, and has put it back since, has left it here.
                before = function_below_patch(before)
                if before is None or not is_own(before, holder, place.name):
                    continue
                ours = self._version(place, before)
            self._replaced[place] = holder, before, ours
            _set_in_holder(holder, place.name, ours)
        return len(self._replaced) == len(self._places)

    def _version(self, place: Place, before: Function) -> Function:
        known, ours = self._versions.get(place, (None, before))
        if known is not before:
            ours = place.version(before)
            ours.__dict__[_MARK] = id(ours)
            if isinstance(before, FunctionType):
                ours.__dict__["__prepare_scriptable__"] = lambda: before  # asked for by torch.jit.script
            self._versions[place] = before, ours
        return ours

    def put_back(self) -> None:
        """Undoes `replace`. A function that other code has replaced since stays; ours below does what the one before
        does."""
        for place, (holder, before, ours) in self._replaced.items():
            if _read_place(holder, place.name) is ours:
                _set_in_holder(holder, place.name, before)
        self._replaced = {}


_MARK = "_stands_for_wrapped"  # of ours: its id, because functools.wraps copies attributes to functions around it


def function_below_patch(function: Any) -> Any:
    """Returns the function that ours stands in place of; another one as it is."""
    if isinstance(function, FunctionType) and function.__dict__.get(_MARK) == id(function):
        return function.__wrapped__  # type: ignore[attr-defined]
    return function


def code_below_patch(holder: object, name: str) -> CodeType:
    """Returns the code of a function of a class or module, below ours."""
    code: CodeType = function_below_patch(getattr(holder, name)).__code__
    return code


_LIBRARIES = (
    "PIL",
    "albumentations",
    "headrace",
    "timm",
    "torch",
    "torchcodec",
    "torchvision",
    "transformers",
    "webdataset",
)


def is_own(function: object, holder: object, name: object) -> bool:
    """Whether a function is the one that its library has put in a class, module or dict, or our version of it."""
    function = function_below_patch(function)
    if isinstance(function, type):
        return _library_of(function) in _LIBRARIES
    if not isinstance(function, FunctionType):
        kind = type(function).__module__  # a native function, also decord's, or an operator in the namespace torch.ops
        return not callable(function) or kind in ("builtins", "torch._ops") or kind.startswith("decord._ffi")
    # functools.wraps copies names, not globals: a library may wrap its own functions in another of its modules.
    module = sys.modules.get(function.__globals__.get("__name__", ""))
    if module is None or function.__globals__ is not vars(module) or _library_of(function) not in _LIBRARIES:
        return False
    if module.__name__.split(".")[0] != _library_of(function):
        return False
    if isinstance(holder, type):
        return function.__qualname__.split(".")[0] in [of.__name__ for of in holder.__mro__]
    return isinstance(holder, dict) or function.__name__ == name


def _library_of(of: object) -> str:
    return str(of.__module__).split(".")[0]


class Untouched:
    """Functions that a native pass stands for.

    Args:
        places: each a class or module and a name in it. What it has now is taken for the library's, if it is that.
    """

    def __init__(self, *places: tuple[object, str]) -> None:
        self._by_holder: dict[int, tuple[object, list[str]]] = {}
        for of, name in places:
            self._by_holder.setdefault(id(of), (of, []))[1].append(name)
        self._take_snapshot()

    def _take_snapshot(self) -> None:
        """Takes what is in the places for the library's, if it is."""
        parts: list[list[Any]] = []  # what looks at a holder, the holder, and what it saw last
        functions: list[FunctionType] = []
        missing: list[tuple[object, str]] = []
        known = True
        for of, names in self._by_holder.values():
            there = [name for name in names if hasattr(of, name)]
            missing += [(of, name) for name in names if name not in there]
            if there:
                look = operator.attrgetter(*there)
                parts.append([look, of, look(of)])
            known = known and all(is_own(getattr(of, name), of, name) for name in there)
            found = [function_below_patch(getattr(of, name)) for name in there]
            functions += [one for one in found if isinstance(one, FunctionType)]
        self._parts, self._functions, self._missing = parts, functions, missing
        self._codes = list(map(_code_of, functions))
        self._now = list(map(_raw_code, functions))  # the codes of the functions that were found to be these
        self._known = known  # last: other threads ask, too

    def __bool__(self) -> bool:
        """Whether all of them are in their places."""
        same = self._are_as_seen()
        if not same and not self._known:
            self._take_snapshot()  # a program may have put them back
            return self._known
        return same and self._known

    def _are_as_seen(self) -> bool:
        for part in self._parts:
            look, of, seen = part
            try:
                now = look(of)
            except AttributeError:
                return False
            if now != seen:
                if _functions_below_patches(now) != _functions_below_patches(seen):
                    return False
                part[2] = now  # our versions have come or gone
        if self._missing and any(hasattr(of, name) for of, name in self._missing):
            return False
        now = list(map(_raw_code, self._functions))
        if now != self._now:
            if list(map(_code_of, self._functions)) != self._codes:
                return False
            self._now = now
        return True


_raw_code = operator.attrgetter("__code__")


def _code_of(function: FunctionType) -> CodeType:
    return library_code(function.__code__)


def _functions_below_patches(functions: object) -> list[object]:
    return [function_below_patch(one) for one in (functions if type(functions) is tuple else (functions,))]


def _read_place(holder: object, name: Any) -> Any:
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _set_in_holder(holder: object, name: Any, value: object) -> None:
    if isinstance(holder, dict):
        holder[name] = value
    else:
        setattr(holder, name, value)
