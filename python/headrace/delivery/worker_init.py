"""Recognises a worker_init_fn that only seeds random generators, which has no effect on native threads."""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

# What such a function may call: modules, and their functions. Seeding has no effect where no worker process runs, and
# the others have none.
_CALLABLE = {
    "random": ("seed",),
    "numpy": (),
    "numpy.random": ("seed",),
    "torch": ("initial_seed", "manual_seed", "seed"),
    "torch.random": ("initial_seed", "manual_seed", "seed"),
    "builtins": ("int", "abs", "hash"),
}
_HARMLESS = {
    *("CACHE", "RESUME", "NOP", "PUSH_NULL", "PRECALL", "KW_NAMES", "POP_TOP", "COPY", "SWAP", "COPY_FREE_VARS"),
    *("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST", "RETURN_VALUE", "LOAD_FAST", "STORE_FAST", "LOAD_FAST_BORROW"),
    *("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_DEREF", "LOAD_CLOSURE"),
    *("BINARY_OP", "BINARY_ADD", "BINARY_SUBTRACT", "BINARY_MULTIPLY", "BINARY_MODULO", "BINARY_POWER", "BINARY_AND"),
    *("BINARY_XOR", "BINARY_FLOOR_DIVIDE", "UNARY_NEGATIVE", "EXTENDED_ARG", "CALL", "CALL_FUNCTION", "CALL_METHOD"),
}
_BETWEEN = ("CACHE", "EXTENDED_ARG", "PUSH_NULL")  # may stand between the load of a module and that of its attribute


def only_seeds(function: Callable[[int], Any]) -> bool:
    """Whether a worker_init_fn does nothing but seed the generators of ``random``, NumPy and torch.

    Its bytecode may contain arithmetic on numbers, and calls of the functions that seed, or read torch's seed.
    """
    while type(function) is functools.partial:
        if not all(type(one) is int for one in (*function.args, *function.keywords.values())):
            return False
        function = function.func
    if type(function) is not types.FunctionType:
        return False
    held = inspect.getclosurevars(function).nonlocals
    return all(type(one) is int for one in held.values()) and _is_harmless(function)


def _is_harmless(function: types.FunctionType) -> bool:
    loaded: Any = None  # by the instruction before
    for instruction in dis.get_instructions(function):
        kind, name = instruction.opname, instruction.argval
        if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded = function.__globals__.get(name, getattr(builtins, str(name), None))
            if type(loaded) is not int and not _is_known(loaded):
                return False
        elif kind in ("LOAD_ATTR", "LOAD_METHOD"):
            if not isinstance(loaded, types.ModuleType):
                return False
            loaded = getattr(loaded, name, None)
            if not _is_known(loaded):
                return False
        elif kind not in _HARMLESS:
            return False
        elif kind not in _BETWEEN:
            loaded = None
    return True


def _is_known(found: Any) -> bool:
    if isinstance(found, types.ModuleType):
        return found.__name__ in _CALLABLE
    return found is not None and any(
        found is getattr(sys.modules.get(module), name, None) for module, names in _CALLABLE.items() for name in names
    )
