"""What a module's file binds to its names, and to those of its classes, from the compiled file itself."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import opcode
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import NamedTuple

_OPS = opcode.opmap
_LOAD_CONST, _IMPORT_NAME, _IMPORT_FROM = _OPS["LOAD_CONST"], _OPS["IMPORT_NAME"], _OPS["IMPORT_FROM"]
_LOAD_SMALL_INT = _OPS.get("LOAD_SMALL_INT")  # from Python 3.14 on
_LOAD_ATTR, _LOAD_METHOD = _OPS["LOAD_ATTR"], _OPS.get("LOAD_METHOD")  # the second up to Python 3.11
_ATTRIBUTE_SHIFT = int(sys.version_info >= (3, 12))  # the lowest bit says whether a method is loaded
_LOAD_NAME, _STORE_NAME, _EXTENDED_ARG = _OPS["LOAD_NAME"], _OPS["STORE_NAME"], _OPS["EXTENDED_ARG"]


class Binding(NamedTuple):
    """What the statements that bind one name mention.

    Attributes:
        codes: of functions, or of the bodies of classes, that are made there.
        names: of names and attributes that are read there: decorators, and what an alias stands for.
        imported: (module, attribute) of imports; the attribute of a whole module is "".
    """

    codes: tuple[CodeType, ...] = ()
    names: frozenset[str] = frozenset()
    imported: frozenset[tuple[str, str]] = frozenset()

    def merged_with(self, other: Binding) -> Binding:
        """Returns the union with another binding of the same name."""
        return Binding(self.codes + other.codes, self.names | other.names, self.imported | other.imported)

    @property
    def body(self) -> CodeType | None:
        """The body of the class; None if the name is not bound to a class."""
        bodies = [code for code in self.codes if not code.co_flags & inspect.CO_OPTIMIZED]
        return bodies[0] if bodies else None


_NOTHING = Binding()


def is_compiled_otherwise(module: ModuleType) -> bool:
    """Returns whether an import hook, as of a type checker, may have changed the code of a module's file."""
    return type(getattr(module.__spec__, "loader", None)) is not SourceFileLoader


def find_binding(module: ModuleType, path: str) -> Binding | None:
    """Returns how a module's file binds a qualified name, such as "Resize.forward".

    Returns:
        An empty binding if the file does not bind it; None if there is no file that could be read.
    """
    classes, _, name = path.rpartition(".")
    found = _bindings_of_module(module.__name__, classes, hasattr(module, "__path__"))
    return None if found is None else found.get(name, _NOTHING)


@functools.lru_cache(maxsize=2048)
def _bindings_of_module(module: str, classes: str, is_package: bool) -> dict[str, Binding] | None:
    """Returns what the file binds in the body of a class, given by its qualified name; "": in the module itself."""
    if not classes:
        code = _code_of(module)
        return None if code is None else _bindings_of_code(code, module if is_package else module.rpartition(".")[0])
    around, _, name = classes.rpartition(".")
    found = _bindings_of_module(module, around, is_package)
    body = None if found is None else found.get(name, _NOTHING).body
    return None if found is None else {} if body is None else _bindings_of_code(body, "")


def _code_of(name: str) -> CodeType | None:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    try:
        code = spec.loader.get_code(spec.name)  # type: ignore[union-attr]
    except Exception:  # compiled modules, and loaders of all kinds
        return None
    return code if isinstance(code, CodeType) else None


def _bindings_of_code(code: CodeType, package: str) -> dict[str, Binding]:
    found: dict[str, Binding] = {}
    codes: list[CodeType] = []
    names: set[str] = set()
    level, source, attribute, last = 0, "", None, 0
    newest = Binding()
    for op, argument in _decode_instructions(code.co_code):
        if op == _LOAD_CONST:
            constant = code.co_consts[argument]
            if isinstance(constant, CodeType):
                codes.append(constant)
            elif type(constant) is int:
                level = constant
        elif op == _LOAD_SMALL_INT:
            level = argument
        elif op == _LOAD_NAME:
            names.add(code.co_names[argument])
        elif op == _LOAD_ATTR:
            names.add(code.co_names[argument >> _ATTRIBUTE_SHIFT])
        elif op == _LOAD_METHOD:
            names.add(code.co_names[argument])
        elif op == _IMPORT_NAME:
            source, attribute = _absolute_module_name(code.co_names[argument], level, package), ""
        elif op == _IMPORT_FROM:
            attribute = code.co_names[argument]
        elif op == _STORE_NAME:
            imported = frozenset() if attribute is None else frozenset([(source, attribute)])
            if last != _STORE_NAME:  # otherwise several names are bound by one statement
                newest = Binding(tuple(codes), frozenset(names), imported)
            name = code.co_names[argument]
            found[name] = found[name].merged_with(newest) if name in found else newest
            codes, names, attribute = [], set(), None
        last = op or last  # 0: an inline cache
    return found


def _absolute_module_name(name: str, level: int, package: str) -> str:
    try:
        return importlib.util.resolve_name("." * level + name, package)
    except ImportError:
        return name


def _decode_instructions(code: bytes) -> Iterator[tuple[int, int]]:
    """Yields (operation, argument); inline caches, whose operation is 0, pass as operations that no caller uses."""
    extended = 0
    for op, low in zip(code[::2], code[1::2], strict=True):
        argument = extended | low
        extended = argument << 8 if op == _EXTENDED_ARG else 0
        if op != _EXTENDED_ARG:
            yield op, argument
