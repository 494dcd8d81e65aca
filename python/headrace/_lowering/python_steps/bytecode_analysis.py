"""Analyses a step's bytecode: may it access random generators, objects shared with other code, or image metadata.

A trial shows only the code that ran for its images; the bytecode shows what may run. Code that cannot be read, such as
another library's compiled functions, counts as drawing from the generators of the process.
"""

from __future__ import annotations

import dis
import enum
import functools
import random
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)

import numpy as np
import torch

from headrace._lowering.transform_library import attributes


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Packages whose functions draw random numbers only through torch's Python functions, except for the names below.
_KNOWN = _split_words("torch torchvision PIL numpy cv2 headrace builtins") | sys.stdlib_module_names
_DRAWING_MODULES = _split_words("random secrets uuid numpy.random")
# Names that draw in other ways (torch's C++ code, Pillow's C code, OpenCV's generator), or that may do anything (eval).
_DRAWING_NAMES = _split_words(
    """urandom effect_noise effect_spread randu setRNGSeed theRNG randShuffle dropout dropout1d dropout2d dropout3d
    alpha_dropout feature_alpha_dropout rrelu rrelu_ gumbel_softmax default_generator manual_seed
    eval exec __import__ globals"""
)
# Modules whose objects hold no state of a step: locks, queues, files, loggers.
MACHINERY = _split_words(
    "threading _thread queue _queue multiprocessing logging io _io socket concurrent asyncio weakref"
)
_DRAWING_LAYERS = re.compile(r".*Dropout\d?d?|RReLU")
_METADATA = _split_words(
    "info getexif _getexif getxmp exif_transpose applist app text icclist tag tag_v2 save getattr vars __dict__"
)
_MUTATING = _split_words(
    """append extend insert pop popitem remove clear update setdefault add discard sort reverse appendleft popleft put
    write send seek fill setflags __setitem__ __setattr__ setattr"""
)
_MUTATING_OPS = _split_words("STORE_ATTR STORE_SUBSCR STORE_SLICE DELETE_ATTR DELETE_SUBSCR")
NOT_CALLED = _split_words(
    """__init__ __new__ __init_subclass__ __repr__ __str__ __len__ __eq__ __hash__ __reduce__ __reduce_ex__
    __getstate__ __setstate__ __copy__ __deepcopy__ extra_repr"""
)
#: Values that no code can change, and that do nothing.
PLAIN = (
    *(int, float, complex, str, bytes, type(None), type(...), range),
    *(enum.Enum, re.Pattern, PurePath, torch.dtype, torch.device),
)
_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)
_CONTAINERS = (list, dict, set, bytearray, np.ndarray, torch.Tensor)
_DESCRIPTORS = (GetSetDescriptorType, MemberDescriptorType)
_MOST = 1000  # objects to examine; a step that reaches more is assumed to do everything


class _Enough(Exception):
    """There are more than `_MOST` objects."""


class Reach:
    """The side effects that a step may have.

    Attributes:
        draws: it may draw from random generators of the whole process.
        reads_metadata: it may read the metadata of an image.
        reaches_outside: it can access a mutable object outside of itself, which copies of the step share.
        mutates: it may change an object.
        asks_for_worker: it may call torch's ``get_worker_info``.
        values: a string of the outside values, which changes when they change.
    """

    def __init__(self, step: object) -> None:
        self.draws = self.reads_metadata = self.reaches_outside = self.mutates = self.asks_for_worker = False
        self._values: list[str] = []
        self._seen: dict[tuple[int, bool], object] = {}  # with the objects: an id may be reused after a death
        try:
            self._examine(step, outside=False)
        except Exception:  # too many objects, too deep, or one that cannot even be asked for its class
            self.draws = self.reads_metadata = self.reaches_outside = self.mutates = self.asks_for_worker = True

    @property
    def shares(self) -> bool:
        """Whether the step, and so a trial of a copy, may change an object that copies of the step share."""
        return self.reaches_outside and self.mutates

    @property
    def values(self) -> str:
        return "; ".join(self._values)

    def _examine(self, value: object, outside: bool) -> None:
        """Records what an object that the step reaches may do, once for each object and each value of `outside`.

        Args:
            outside: whether it was reached through something that copies of the step share.
        """
        if (id(value), outside) in self._seen:
            return
        self._seen[id(value), outside] = value
        if len(self._seen) > _MOST:
            raise _Enough
        if isinstance(value, PLAIN):
            if outside:
                self._values.append(repr(value))
        elif isinstance(value, FunctionType):
            self._examine_function(value)
        elif isinstance(value, MethodType):
            self._examine_each((value.__func__, value.__self__), outside)
        elif isinstance(value, functools.partial):
            self._examine_each((value.func, *value.args, *value.keywords.values()), outside)
        elif isinstance(value, type):
            self._examine_class(value, made=False)
        elif isinstance(value, _GENERATORS):
            self.draws |= outside
        elif isinstance(value, BuiltinFunctionType):
            self._examine_builtin(value)
        # An object with set_random_seed is seeded for each sample, so its generators are not the process's.
        elif not (inspectable(value) and callable(getattr(value, "set_random_seed", None))):
            self._examine_object(value, outside)

    def _examine_each(self, values: Iterable[object], outside: bool) -> None:
        for value in values:
            self._examine(value, outside)

    def _examine_builtin(self, value: BuiltinFunctionType) -> None:
        self.draws |= not is_known(getattr(value, "__module__", None) or type(value.__self__).__module__)
        self.draws |= isinstance(value.__self__, _GENERATORS) or value.__name__ in _DRAWING_NAMES

    def _examine_object(self, value: object, outside: bool) -> None:
        if isinstance(value, (tuple, frozenset)):
            self._examine_each(value, outside)
            return
        if isinstance(value, _CONTAINERS):
            self.reaches_outside |= outside
            plain = isinstance(value, (bytearray, np.ndarray, torch.Tensor))
            if outside:
                self._values.append(attributes(value) if plain else f"{len(value)} in a {type(value).__name__}")
            if not plain:
                self._examine_each([*value, *value.values()] if isinstance(value, dict) else list(value), outside)
            return
        self.reaches_outside |= outside
        cls = type(value)
        if cls.__module__.partition(".")[0] in MACHINERY:
            return
        self.draws |= cls.__module__.startswith("torch.") and bool(_DRAWING_LAYERS.fullmatch(cls.__name__))
        self._examine_class(cls, made=True)
        self._examine_each(list(getattr(value, "__dict__", {}).values()), outside)
        slots = (getattr(one, "__slots__", ()) for one in cls.__mro__ if not is_known(one.__module__))
        names = [name for slot in slots for name in ((slot,) if isinstance(slot, str) else slot)]
        self._examine_each([getattr(value, name) for name in names if hasattr(value, name)], outside)

    def _examine_class(self, cls: type, *, made: bool) -> None:
        """Examines the methods of a class; if an instance is `made` already, only those that a call may run."""
        for one in cls.__mro__:
            members = vars(one).items()
            if is_known(one.__module__):
                functions = (member for _, member in members if isinstance(member, FunctionType))
                self.draws |= any(_names_module(function, "random") for function in functions)
                continue
            for name, member in members:
                if made and name in NOT_CALLED:
                    continue
                if isinstance(member, property):
                    self._examine_each((member.fget, member.fset), True)
                elif isinstance(member, (staticmethod, classmethod)):
                    self._examine(member.__func__, True)
                elif isinstance(member, FunctionType) or not (
                    name.startswith("__") or isinstance(member, _DESCRIPTORS)
                ):
                    self._examine(member, True)

    def _examine_function(self, function: FunctionType) -> None:
        """Examines a Python function: its code, the globals that it names, its closure and its defaults.

        A function of a known package is judged by its name and its module, without its code.
        """
        if is_known(function.__module__):
            self.reads_metadata |= function.__name__ in _METADATA
            self.draws |= function.__name__ in _DRAWING_NAMES or function.__module__ in _DRAWING_MODULES
            self.asks_for_worker |= function.__name__ == "get_worker_info"
            return
        names: set[str] = set()
        for code in _nested_codes(function.__code__):
            names |= self._examine_code(code, function.__code__.co_freevars)
        self.draws |= bool(names & _DRAWING_NAMES)
        self.reads_metadata |= bool(names & _METADATA)
        self.asks_for_worker |= "get_worker_info" in names
        # A trailing underscore: torch's in-place methods.
        self.mutates |= bool(names & _MUTATING) or any(name.endswith("_") and name[:2] != "__" for name in names)
        for name in names & function.__globals__.keys():
            if not name.startswith("@"):  # names that pytest inserts when it rewrites assertions
                self._examine_named(function.__globals__[name], names)
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            self._examine_named(content, names)
        self._examine_each(function.__defaults__ or (), True)
        self._examine_each((function.__kwdefaults__ or {}).values(), True)

    def _examine_code(self, code: CodeType, free: tuple[str, ...]) -> set[str]:
        """Returns the names that a function's code uses; records its stores and imports."""
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if name in ("STORE_GLOBAL", "DELETE_GLOBAL") or (name == "STORE_DEREF" and instruction.argval in free):
                self.reaches_outside = self.mutates = True
            elif name == "IMPORT_NAME":
                self._examine_import(instruction.argval, set(code.co_names))
            in_place = name.startswith("INPLACE") or (name == "BINARY_OP" and instruction.argrepr.endswith("="))
            self.mutates |= in_place or name in _MUTATING_OPS
        strings = {one for one in code.co_consts if isinstance(one, str) and one.isidentifier()}
        return {*code.co_names, *(strings & (_METADATA | _DRAWING_NAMES))}

    def _examine_import(self, name: str, names: set[str]) -> None:
        module = sys.modules.get(name)
        if module is not None:
            self._examine_named(module, names)
        else:
            self.draws |= name in _DRAWING_MODULES or not is_known(name)

    def _examine_named(self, value: object, names: set[str]) -> None:
        """Examines a value that code names; for a module, the members that the code names."""
        if not isinstance(value, ModuleType):
            self._examine(value, True)
            return
        self.draws |= value.__name__ in _DRAWING_MODULES
        self.draws |= value.__name__ == "numpy" and "random" in names
        if not is_known(value.__name__):
            for name in names & vars(value).keys():
                self._examine_named(vars(value)[name], names)


def inspectable(value: object) -> bool:
    """Whether an object has real attributes only, not ones that ``__getattr__`` invents, as a mock's."""
    return not hasattr(type(value), "__getattr__") or isinstance(value, torch.nn.Module)


def is_known(module: str | None) -> bool:
    """Whether a module is of a package whose functions are judged by their names."""
    return (module or "").partition(".")[0] in _KNOWN


def _names_module(function: FunctionType, name: str) -> bool:
    module = function.__globals__.get(name)
    return name in function.__code__.co_names and isinstance(module, ModuleType) and module.__name__ == name


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yields a function's code, then that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)
