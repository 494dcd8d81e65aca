"""Which functions of the libraries the Python path of a sample may call, by the names in their code.

The names are followed from method to method. A name that is an attribute of something unknown stands for the methods of
that name in all classes that have been reached, so some functions are found that no sample calls.
"""

from __future__ import annotations

import builtins
import enum
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import torch

from headrace._base.originals.code_files import find_binding
from headrace._base.originals.originality import ABSENT, TOOLS, code_of, function_in, is_followed, is_own

#: Special methods that operators and builtins call, without a name in the code; all others are left out.
SPECIAL = (
    "__array__",
    "__array_interface__",
    "__bool__",
    "__call__",
    "__contains__",
    "__enter__",
    "__exit__",
    "__getattr__",
    "__getattribute__",
    "__getitem__",
    "__getitems__",
    "__index__",
    "__iter__",
    "__len__",
    "__next__",
)
_PLAIN = (tuple, enum.Enum, BaseException)  # classes that have no methods of their own to speak of
_DATA = (str, bytes, int, float, complex, tuple, list, dict, set, frozenset, type(None))  # of values without functions
_IMAGES = ("Image", "Tensor")  # names of the classes of images
_KERNELS = "torchvision.transforms.v2.functional._utils"


class FunctionLocation(NamedTuple):
    """Where a function or class is: an attribute of a module or class, or a value of a dict.

    Attributes:
        names: what it is in.
        name: its name there.
        module, path: what the file says of it: module and qualified name.
    """

    names: Mapping[Any, object]
    name: object
    module: str
    path: str

    @property
    def value(self) -> object:
        """What is there now; ABSENT: nothing."""
        return self.names.get(self.name, ABSENT)

    def __str__(self) -> str:
        return f"{self.module}.{self.path}"


class Reached:
    """The locations of the functions that calls reach.

    Attributes:
        locations: with the values that are there.
        functions: that are followed.
        absent: by holder, names that hide another function if they come into a module or class.
        replaced: the locations among them whose value is not the library's own; these values are not followed.
    """

    def __init__(self) -> None:
        self.locations: dict[tuple[int, object], tuple[FunctionLocation, object]] = {}
        self.replaced: list[FunctionLocation] = []
        self.absent: dict[int, tuple[Mapping[str, object], set[str]]] = {}
        self._bases: dict[type, list[type]] = {}  # of the classes that have been reached: those that are followed
        self._names: dict[str, None] = {}
        self.functions: dict[FunctionType, None] = {}
        self._left: list[FunctionType] = []

    def follow(
        self,
        classes: Iterable[type],
        names: Iterable[str],
        functions: Iterable[object],
        locations: Iterable[FunctionLocation],
    ) -> None:
        """Follows the methods of these names of the classes, the functions, and what is at the locations."""
        for one in classes:
            self._follow_class(one)
        for name in names:
            self._follow_name(name)
        for function in functions:
            self._follow_value(function)
        for location in locations:
            self._follow_location(location)
        while self._left:
            self._follow_code(self._left.pop())

    @property
    def holders(self) -> list[Mapping[str, object]]:
        """The names of the classes that are followed: one more in a class may hide a method of a class below."""
        return [vars(one) for one in dict.fromkeys(one for bases in self._bases.values() for one in bases)]

    def methods(self, cls: type) -> frozenset[str]:
        """Returns the names of the methods that are looked up on an object, where an attribute of it comes first."""
        found = {name for name in self._names if not name.startswith("__") and hasattr(cls, name)}
        return frozenset(name for name in found if isinstance(function_in(_find_member(cls, name)), FunctionType))

    def _follow_value(self, value: object) -> None:
        value = function_in(value)
        if isinstance(value, type):
            if is_followed(value.__module__):
                self._follow_class(value)
                for one in self._bases.get(value, ()):  # it may be called
                    self._follow_value(vars(one).get("__init__"))
            return
        self._follow_kernels(value)
        for _ in range(10):  # wrappers
            if isinstance(value, FunctionType) and value not in self.functions:
                if not is_followed(value.__globals__.get("__name__")):
                    break
                self.functions[value] = None
                self._left.append(value)
            value = getattr(value, "__wrapped__", None)

    def _follow_kernels(self, function: object) -> None:
        """Looks up what version 2 of torchvision's transforms calls for a functional, by the class of the image."""
        registry = getattr(sys.modules.get(_KERNELS), "_KERNEL_REGISTRY", {})
        kernels = registry.get(function, {}) if isinstance(function, FunctionType) else {}
        for kind, kernel in kernels.items():
            known = getattr(kind, "__name__", "") in _IMAGES and kernel.__module__ in sys.modules
            if known and hasattr(kernel, "__qualname__"):
                self._follow_location(FunctionLocation(kernels, kind, kernel.__module__, kernel.__qualname__))

    def _follow_class(self, cls: type) -> None:
        if cls in self._bases or issubclass(cls, _PLAIN):
            return
        self._bases[cls] = [one for one in cls.__mro__ if is_followed(one.__module__)]
        for name in list(self._names):
            self._follow_method(cls, name)

    def _follow_name(self, name: str) -> None:
        if name not in self._names and (name in SPECIAL or not name.startswith("__")):
            self._names[name] = None
            for cls in list(self._bases):
                self._follow_method(cls, name)

    def _follow_method(self, cls: type, name: str) -> None:
        for one in self._bases[cls]:
            value = vars(one).get(name, ABSENT)
            if value is not ABSENT and not isinstance(value, type) and callable(function_in(value)):
                self._follow_location(
                    FunctionLocation(vars(one), name, one.__module__, f"{one.__qualname__}.{name}"), id(one)
                )

    def _follow_location(self, location: FunctionLocation, holder: int = 0) -> None:
        """Notes what is at a location, and follows it if it is the library's own."""
        key, value = (holder or id(location.names), location.name), location.value
        if key in self.locations:
            return
        if not holder and location.module.startswith("headrace."):  # functions of ours that no other code names
            self._follow_value(value)
            return
        self.locations[key] = location, value
        if is_own(value, sys.modules[location.module], location.path):
            self._follow_value(value)
        else:
            self.replaced.append(location)

    def _follow_tensor_method(self, name: str) -> None:
        """Looks up a method of tensors; notes where ``torch.Tensor`` itself has none that hides an inherited one."""
        own = vars(torch.Tensor)
        if name in own:
            self._follow_location(
                FunctionLocation(own, name, torch._tensor.__name__, f"Tensor.{name}"), id(torch.Tensor)
            )
        else:
            self.absent.setdefault(id(torch.Tensor), (own, set()))[1].add(name)

    def _follow_code(self, function: FunctionType) -> None:
        """Looks up the names in a function's code."""
        scope, home = function.__globals__, function.__globals__["__name__"]
        names = dict.fromkeys(name for code in _nested_codes(code_of(function)) for name in code.co_names)
        within: list[ModuleType] = []
        for name in names:
            value = scope.get(name, ABSENT)
            if isinstance(value, ModuleType):
                within.append(value)
            if value is ABSENT and name == "open":
                self._follow_location(FunctionLocation(vars(builtins), name, "builtins", name))
                self.absent.setdefault(id(scope), (scope, set()))[1].add(name)
            if value is not ABSENT and (callable(value) or _stands_for_import(value, home, name)):
                self._follow_location(FunctionLocation(scope, name, home, name))
            if name not in self._names and callable(getattr(torch.Tensor, name, None)):
                self._follow_tensor_method(name)
            self._follow_name(name)
        for module in within:
            if not (is_followed(module.__name__) or module.__name__ in TOOLS):
                continue
            for name in names:
                if callable(vars(module).get(name)):
                    self._follow_location(FunctionLocation(vars(module), name, module.__name__, name))


def _stands_for_import(value: object, module: str, name: str) -> bool:
    """Whether a value is a module, or an object in the place of one."""
    if isinstance(value, ModuleType):
        return True
    binding = None if isinstance(value, _DATA) or module not in sys.modules else find_binding(sys.modules[module], name)
    return binding is not None and bool(binding.imported)


def _find_member(cls: type, name: str) -> object:
    return next(vars(one)[name] for one in cls.__mro__ if name in vars(one))


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)
