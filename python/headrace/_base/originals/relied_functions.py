"""The functions that a loader's native batches stand for, compared with the libraries' own when an epoch begins."""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, TypeVar

from PIL import Image
from torch import nn
from torch.utils.data import _utils

from headrace._base.errors import HeadraceError
from headrace._base.originals.call_roots import HeldFunction, Roots
from headrace._base.originals.called_functions import SPECIAL, FunctionLocation, Reached
from headrace._base.originals.originality import ABSENT, function_in, is_own, library_code

#: Formats that native threads decode -> (Pillow's plugin, what opens them there, how a file begins).
_OPENERS = {
    "JPEG": ("PIL.JpegImagePlugin", "jpeg_factory", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01"),
    "PNG": ("PIL.PngImagePlugin", "PngImageFile", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
}
_CALLED = (*SPECIAL, "forward")
_OF_MODULES = ("__call__", "_wrapped_call_impl", "_call_impl")
#: What torch collates batches with: the first two, and the functions that its table names.
_COLLATING = (
    "default_collate",
    "default_convert",
    "collate_float_fn",
    "collate_int_fn",
    "collate_numpy_array_fn",
    "collate_numpy_scalar_fn",
    "collate_str_fn",
    "collate_tensor_fn",
)
_MOST_KEPT = 64  # sets of functions


class Replaced(HeadraceError, TypeError):
    """A function that torch's way would call is not the library's own."""


_Route = TypeVar("_Route", bound=Any)


def rely_on_functions(route: _Route, relied: Relied | None) -> _Route:
    """Returns a route that relies on functions. Raises Replaced if one of these is not the library's own now."""
    if relied is not None:
        relied.check()
    return route if route.relied is relied else replace(route, relied=relied)


def are_functions_original(cls: type) -> bool:
    """Returns whether all functions that an object of a library's class calls are the library's own now."""
    found = _of_classes.get(cls)
    if found is None or not found.are_as_before():
        roots = Roots((), images=False, collates=False)
        roots.classes[cls] = None
        found = _of_classes[cls] = _Functions(roots)
    return found.replaced is None


class Relied:
    """The functions that torch's way would call for one dataset.

    Args:
        datasets: that of the loader, and those that make its samples.
        images: whether its samples are made of images.
        collates: whether batches are collated as torch does by default.
        collate_fn: the loader's, if that is one of torch's functions and named by the caller.
    """

    def __init__(
        self,
        datasets: Sequence[object],
        *,
        images: bool,
        collates: bool = True,
        collate_fn: Callable[..., object] | None = None,
    ) -> None:
        roots = Roots(datasets, images=images, collates=collates)
        if collate_fn is not None:
            roots.held.append(HeldFunction(collate_fn, _utils.collate.__name__, collate_fn.__name__))
        self._roots, self._images = roots, images
        self._functions = _functions_of(roots)
        methods = (
            (vars(one), self._functions.methods(type(one)), one) for one in roots.datasets if hasattr(one, "__dict__")
        )
        self._own = [(attributes, names | {"__getitems__"}, type(one)) for attributes, names, one in methods]

    def __reduce__(self) -> tuple[object, ...]:
        return _return_none, ()  # a copy of a loader looks for its functions again: there may be others in its process

    def check(self) -> None:
        """Raises Replaced if one of them is not the library's own now."""
        why = self.why_not()
        if why is not None:
            raise Replaced(why)

    def why_not(self) -> str | None:
        """Returns which function is not the library's own now, and what has replaced it; None if all of them are."""
        if not self._functions.are_as_before():
            self._functions = _functions_of(self._roots)
        if self._functions.replaced is not None:
            return self._functions.replaced
        for attributes, names, cls in self._own:
            if not names.isdisjoint(attributes):
                name = next(one for one in attributes if one in names)
                return _describe_replacement(
                    f"{cls.__module__}.{cls.__qualname__}.{name} of the dataset", attributes[name]
                )
        hooks = nn.modules.module
        if self._roots.are_modules and (hooks._global_forward_hooks or hooks._global_forward_pre_hooks):
            return "a forward hook of all modules is registered, which native threads would not call; remove it"
        return next(filter(None, map(_find_foreign_opener, _OPENERS)), None) if self._images else None


def _return_none() -> None:
    return None


class _Functions:
    """What is at the locations that calls from some roots reach.

    Attributes:
        replaced: what is not the library's own, as a sentence.
    """

    def __init__(self, roots: Roots) -> None:
        self._reached = reached = Reached()
        names = _COLLATING if roots.collates else ()
        locations = [FunctionLocation(vars(_utils.collate), name, _utils.collate.__name__, name) for name in names]
        fetchers = (_utils.fetch._MapDatasetFetcher, _utils.fetch._IterableDatasetFetcher)
        locations += [
            FunctionLocation(vars(one), "fetch", _utils.fetch.__name__, f"{one.__name__}.fetch") for one in fetchers
        ]
        if roots.are_modules:
            locations += [
                FunctionLocation(vars(nn.Module), name, nn.Module.__module__, f"Module.{name}") for name in _OF_MODULES
            ]
        held = [one for one in roots.held if is_own(one.function, sys.modules[one.module], one.path)]
        reached.follow(roots.classes, _CALLED, [one.function for one in held], locations)
        self.replaced: str | None = None
        strangers = [(f"{one.module}.{one.path}", one.function) for one in roots.held if one not in held]
        strangers += [(str(location), location.value) for location in reached.replaced]
        if strangers:
            self.replaced = _describe_replacement(*strangers[0])
        holders: dict[int, tuple[Mapping[Any, object], dict[object, object]]] = {}
        for (holder, name), (location, value) in reached.locations.items():
            holders.setdefault(holder, (location.names, {}))[1][name] = value
        self._values = [_Values(names, values) for names, values in holders.values()]
        self._absent = [(names, frozenset(absent)) for names, absent in reached.absent.values()]
        self._scopes = [(names, len(names)) for names in reached.holders]
        found = (function_in(value) for _, value in reached.locations.values())
        candidates = [*reached.functions, *found, *(one.function for one in roots.held)]
        functions = list(dict.fromkeys(one for one in candidates if isinstance(one, FunctionType)))
        for function in functions:
            _, *now = _CODE(function)
            if self.replaced is None and not _has_unchanged_defaults(function, now):
                name = f"{function.__module__}.{function.__qualname__}"
                self.replaced = f"the defaults of {name} were changed, which native threads would not see; restore them"
        functions += [one for one in (function_in(value) for _, value in strangers) if isinstance(one, FunctionType)]
        self._functions, self._code = functions, _codes_of(functions)

    def methods(self, cls: type) -> frozenset[str]:
        return self._reached.methods(cls)

    def are_as_before(self) -> bool:
        """Returns whether all of it is as when this was made."""
        if any(len(names) != count for names, count in self._scopes):
            return False
        if any(not absent.isdisjoint(names) for names, absent in self._absent):
            return False
        if not all(map(operator.is_, _codes_of(self._functions), self._code)):
            return False
        return all(one.are_there() for one in self._values)


class _Values:
    """The values at the locations of one module, class or dict, compared by identity in one step.

    Args:
        names: what they are in.
        values: by name.
    """

    def __init__(self, names: Mapping[Any, object], values: Mapping[object, object]) -> None:
        self._names, self._values = names, values
        get = operator.itemgetter(*values)
        self._get = get if len(values) > 1 else lambda holder: (get(holder),)
        self._same = tuple(values.values())

    def are_there(self) -> bool:
        """Returns whether they still are."""
        try:
            if all(map(operator.is_, self._get(self._names), self._same)):
                return True
        except KeyError:
            pass
        # A descriptor is another one if it was put back, or if headrace has put its own around it.
        now = ((self._names.get(name, ABSENT), value) for name, value in self._values.items())
        return all(one is other or function_in(one) is function_in(other) for one, other in now)


_CODE = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")


def _codes_of(functions: Iterable[FunctionType]) -> list[object]:
    return list(map(library_code, itertools.chain.from_iterable(map(_CODE, functions))))


_kept: dict[object, _Functions] = {}
_of_classes: dict[type, _Functions] = {}
_first_defaults: dict[FunctionType, list[object]] = {}


def _functions_of(roots: Roots) -> _Functions:
    """Returns the functions that calls reach; those found before for the same classes, if nothing has changed."""
    held = frozenset((id(one.function), one.module, one.path) for one in roots.held)
    key = roots.collates, frozenset(roots.classes), held
    found = _kept.get(key)
    if found is None or not found.are_as_before():
        found = _Functions(roots)
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[key] = found
    return found


def _has_unchanged_defaults(function: FunctionType, now: list[object]) -> bool:
    first = _first_defaults.setdefault(function, now)
    return all(a is b for a, b in zip(now, first, strict=True))


def _find_foreign_opener(format: str) -> str | None:
    """Returns what other than Pillow's own plugin would open files of a format; None without any."""
    plugin, name, begin = _OPENERS[format]
    before = Image.ID[: Image.ID.index(format)] if format in Image.ID else None
    now = Image.OPEN.get(format), before
    if now == _approved.get(format):
        return None
    if now[0] is None or before is None or not is_own(now[0][0], sys.modules[plugin], name):
        return _describe_replacement(f"Pillow's plugin for {format}s", None if now[0] is None else now[0][0])
    for other in before:
        accept = Image.OPEN[other][1]
        if accept is None or accept(begin) is True:
            return _describe_replacement(f"Pillow's plugin for {format}s", Image.OPEN[other][0])
    _approved[format] = now
    return None


_approved: dict[str, tuple[object, object]] = {}


def _describe_replacement(what: str, by: object) -> str:
    function = function_in(by)
    named = getattr(function, "__qualname__", None)
    code = getattr(function, "__code__", None)
    if isinstance(named, str):
        who = f"{getattr(function, '__module__', '')}.{named}"
        if code is not None and who == what:
            who = f"other code ({code.co_filename}, line {code.co_firstlineno})"
    else:
        who = "nothing" if by is None or by is ABSENT else f"an object of {type(by).__module__}.{type(by).__qualname__}"
    return f"{what} was replaced by {who}, which native threads would not call; put the library's own back"
