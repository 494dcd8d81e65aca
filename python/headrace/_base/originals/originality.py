"""Decides whether a function, class or module is the one that a library's file makes, or has been put there since.

A patch can copy a function's name, module and documentation, and may have been made before headrace was imported. So a
function is compared with the code in the library's compiled file; decorators, aliases and imports of that file are
followed. What headrace itself puts in place of Pillow's and torchvision's functions counts as what it replaces.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from inspect import CO_OPTIMIZED
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TypeVar

from headrace._base.originals.code_files import Binding, find_binding, is_compiled_otherwise

_HEADRACE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "")  # noqa: PTH118, PTH120 - as text
_OURS = tuple(os.path.join(_HEADRACE, one, "") for one in ("pillow", os.path.join("_loading", "doors")))  # noqa: PTH118 - compared as text
_MOST_WRAPPERS = 10
T = TypeVar("T")
ABSENT = object()  # where there is no value

#: Packages and modules whose functions are followed to what they call.
_PACKAGES = frozenset(("torchvision", "PIL", "timm", "transformers"))
_OF_TORCH = ("torch.utils.data.", "torch.nn.modules.container")
_OF_HEADRACE = ("datasets.", "transforms.", "_recipe.arithmetic.", "_recipe.hf_processors.", "_recipe.images.")
#: Modules whose functions the followed ones call, and which are not followed themselves.
TOOLS = frozenset(("torch", "random", "numpy", "numpy.random"))
#: Functions that others put in place of one and that only help where it fails -> the global name of what they call.
_HELPERS = {("ultralytics.utils.patches", "image_open"): "_image_open"}
#: Modules of the types of callable values that are no functions: aliases of types and the like.
_OF_TYPES = frozenset(("typing", "typing_extensions", "re", "operator"))

_COMPILED = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)
_COMPARED = (
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_flags",
    "co_firstlineno",
    "co_name",
)


def is_own(value: object, module: ModuleType, path: str) -> bool:
    """Returns whether `value` is what the file of `module` binds to the qualified name `path`."""
    value = function_in(value)
    if is_ours(value) or (package_of(module) != "headrace" and _is_from_headrace(value)):
        return True
    binding = find_binding(module, path)
    if isinstance(value, _COMPILED):  # maybe a method of an object, which the file gives this name
        return value.__name__ == path.rpartition(".")[2] or (binding is not None and value.__name__ in binding.names)
    if binding is None:
        return _claims_module(value, module, path)
    if isinstance(value, ModuleType):
        return _is_module(value, binding, module)
    if isinstance(value, type):
        return _is_class(value, binding, module)
    if any(code.co_flags & CO_OPTIMIZED for code in binding.codes):
        made = isinstance(value, FunctionType) and _is_code_among(library_code(value.__code__), binding.codes)
        return made or _is_instrumented(value, binding, module) or _is_decorated(value, binding, module)
    return _is_bound_to_name(value, binding, module)


def is_followed(module: object) -> bool:
    """Returns whether functions of a module, given by its name, are followed."""
    return isinstance(module, str) and _is_followed(module)


@functools.lru_cache(maxsize=4096)
def _is_followed(module: str) -> bool:
    first, _, rest = module.partition(".")
    if first == "headrace":
        return f"{rest}.".startswith(_OF_HEADRACE)
    return first in _PACKAGES or module.startswith(_OF_TORCH)


def function_in(value: object) -> object:
    """Returns the function in a method's descriptor, without what headrace has put around it."""
    for _ in range(_MOST_WRAPPERS):
        if isinstance(value, (staticmethod, classmethod, MethodType)):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif isinstance(value, functools.cached_property):
            value = value.func
        elif isinstance(value, FunctionType) and (below := _HELPERS.get((value.__module__, value.__qualname__))):
            value = value.__globals__.get(below)
        elif is_ours(value) and hasattr(value, "__wrapped__"):
            value = value.__wrapped__
        else:
            break
    return value


def code_of(function: FunctionType) -> CodeType:
    """Returns a function's code; where headrace has put its own there, the one of the file."""
    code, home = library_code(function.__code__), sys.modules.get(function.__module__)
    if home is None or package_of(home) == "headrace" or not code.co_filename.startswith(_OURS):
        return code
    made = (find_binding(home, function.__qualname__) or Binding()).codes
    return made[0] if made else code


def is_ours(value: object) -> bool:
    """Returns whether headrace has put `value`, or its code, in place of another library's function."""
    if isinstance(value, FunctionType):
        return value.__code__.co_filename.startswith(_OURS)
    return type(value).__module__.startswith(("headrace.pillow.", "headrace._loading.doors."))


_replaced_codes: dict[int, tuple[object, object]] = {}  # id of code of ours -> itself, which is kept, and the library's


def note_replaced_code(ours: CodeType, before: CodeType) -> None:
    """Called with code that headrace puts into a library's function, and with the function's own."""
    _replaced_codes[id(ours)] = ours, before


def library_code(code: T) -> T:
    """Returns the code in whose place headrace has put `code`; anything else as it is."""
    found = _replaced_codes.get(id(code))
    return code if found is None else found[1]  # type: ignore[return-value]


def _is_from_headrace(value: object) -> bool:
    return isinstance(value, FunctionType) and value.__code__.co_filename.startswith(_HEADRACE)


def package_of(value: object) -> str:
    """Returns the package that a function, class or module comes from; "" if it does not say."""
    if isinstance(value, FunctionType):
        name = value.__globals__.get("__name__")
    else:
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return name.partition(".")[0] if isinstance(name, str) else ""


def same_code(one: CodeType, other: CodeType) -> bool:
    """Returns whether two code objects were compiled from the same lines: file names do not count."""
    if one is other:
        return True
    if any(getattr(one, name) != getattr(other, name) for name in _COMPARED):
        return False
    return len(one.co_consts) == len(other.co_consts) and all(
        same_code(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else type(a) is type(b) and a == b
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


def _is_code_among(code: CodeType, codes: Iterable[CodeType]) -> bool:
    return code.co_filename.startswith(_OURS) or any(same_code(code, one) for one in codes)


def _is_instrumented(value: object, binding: Binding, module: ModuleType) -> bool:
    """Whether an import hook has compiled a function of the file, with other code than the file has without it."""
    if not isinstance(value, FunctionType) or not is_compiled_otherwise(module):
        return False
    code = value.__code__
    locations = {(one.co_name, one.co_firstlineno) for one in binding.codes}
    return code.co_filename == module.__file__ and (code.co_name, code.co_firstlineno) in locations


def _is_decorated(value: object, binding: Binding, module: ModuleType) -> bool:
    """Whether a function that the file makes is wrapped by the decorators that the file names."""
    if not binding.codes or not binding.names:
        return False
    named = (vars(module).get(name) for name in binding.names)
    packages = {package_of(module), *map(package_of, named)}
    for one in _unwrap_functions(value):
        if isinstance(one, FunctionType) and _is_code_among(library_code(one.__code__), binding.codes):
            return True
        if (package_of(one) if isinstance(one, FunctionType) else package_of(type(one))) not in packages:
            return False
    return False


def _unwrap_functions(value: object) -> Iterator[object]:
    """Yields a function, and the functions that it wraps, one inside the other."""
    for _ in range(_MOST_WRAPPERS):
        yield value
        inner = getattr(value, "__wrapped__", None)
        if inner is None:
            cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or () if _has_cell_value(cell)]
            inner = next((one for one in cells if isinstance(one, FunctionType)), None)
        if inner is None:
            return
        value = function_in(inner)


def _has_cell_value(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_bound_to_name(value: object, binding: Binding, module: ModuleType) -> bool:
    """Whether the file imports a function, or gives another name to one."""
    if _is_imported_object(value, binding):
        return True
    if binding == Binding():
        return _is_star_import(value, module)
    if isinstance(value, functools.partial) is not ("partial" in binding.names):
        return False
    if isinstance(value, functools.partial):
        value = function_in(value.func)
    elif isinstance(value, GenericAlias) or type(value).__module__ in _OF_TYPES:
        return True
    home, path = sys.modules.get(str(getattr(value, "__module__", ""))), str(getattr(value, "__qualname__", ""))
    last = path.rpartition(".")[2]
    if home is None or not (last in binding.names or any(last == name for _, name in binding.imported)):
        return False
    there = find_binding(home, path)
    known = package_of(home) == package_of(module) or is_followed(home.__name__) or _is_imported_from(home, binding)
    return known and there is not binding and (there is None or bool(there.codes)) and is_own(value, home, path)


def _is_star_import(value: object, module: ModuleType) -> bool:
    """Whether a function that the file does not name is made in its package, as ``from part import *`` brings it."""
    around = sys.modules.get(package_of(module))
    if not isinstance(value, FunctionType) or around is None or not hasattr(around, "__path__"):
        return False
    return value.__code__.co_filename.startswith(tuple(os.path.join(one, "") for one in around.__path__))  # noqa: PTH118 - compared as text


def _is_imported_object(value: object, binding: Binding) -> bool:
    """Whether an import of the file would give this value now, and the value is the source's own."""
    for source, name in binding.imported:
        there = sys.modules.get(source)
        if there is not None and name and vars(there).get(name, ABSENT) is value:
            return not is_followed(source) or is_own(value, there, name)
    return False


def _is_imported_from(home: ModuleType, binding: Binding) -> bool:
    return any(package_of(home) == source.partition(".")[0] for source, _ in binding.imported)


def _is_module(value: ModuleType, binding: Binding, module: ModuleType) -> bool:
    names = {one for source, name in binding.imported for one in (source, source.partition(".")[0], f"{source}.{name}")}
    if any(value is sys.modules.get(name) for name in names):
        return True
    if any(is_followed(name) or name in TOOLS for name in names):
        return False
    return bool(names) or package_of(value) == package_of(module)


def _is_class(value: type, binding: Binding, module: ModuleType) -> bool:
    if value.__module__.partition(".")[0] in (package_of(module), "builtins") or is_followed(value.__module__):
        return True
    return _is_imported_object(value, binding) or any(
        value.__module__.partition(".")[0] == source.partition(".")[0] for source, _ in binding.imported
    )


def _claims_module(value: object, module: ModuleType, path: str) -> bool:
    """Whether a function says that it comes from a module without a file that could be read."""
    if isinstance(value, FunctionType):
        return value.__globals__ is vars(module) and value.__code__.co_name == path.rpartition(".")[2]
    return package_of(value) in (package_of(module), "builtins", "")
