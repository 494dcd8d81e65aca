"""Finds the program's own functions that compare classes with ``is``: `type(x) is torch.Tensor` is false of a deferred
tensor before something has read it, so none is made where such a function is found.

``isinstance``, ``type(x) == torch.Tensor``, ``type(x) is type(y)`` of two deferred tensors and dispatch by classes need
no care: see `deferred_tensor._Meta`.
"""

from __future__ import annotations

import dis
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import PurePath

_NEAR = 12  # instructions between the call of `type` and the comparison
_INSTALLED = {"site-packages", "dist-packages"}
_FOLDERS = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
#: Libraries that headrace has imported, wherever they are: in a checkout, or in a folder of PYTHONPATH. A program may
#: have packages named as others are.
_LIBRARIES = ("headrace", "torch", "torchvision", "torchgen", "functorch", "numpy", "PIL")


class TypeChecks:
    """What was found in the modules imported so far.

    Attributes:
        found: name of the first such function, or None.
    """

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._count = 0
        self.found: str | None = None

    def look(self) -> str | None:
        """Looks into modules that have been imported since the last call; returns `found`."""
        if self._count != len(sys.modules):
            self._count = len(sys.modules)
            for name, module in sys.modules.copy().items():
                if self.found is None and name not in self._modules and _is_of_program(module):
                    self.found = next((f"{name}.{code.co_name}" for code in _codes_in(module) if has_check(code)), None)
                self._modules.add(name)
        return self.found


def _is_of_program(module: object) -> bool:
    file = getattr(module, "__file__", None)
    name = getattr(module, "__name__", "")
    if not isinstance(module, types.ModuleType) or name.partition(".")[0] in _LIBRARIES:
        return False
    return name == "__main__" or (isinstance(file, str) and not _is_installed(file))


def _is_installed(file: str) -> bool:
    """Whether a file is the standard library's or a package's: also a user's own packages, and those of the Python that
    a virtual environment was made from."""
    return file.startswith(_FOLDERS) or not _INSTALLED.isdisjoint(PurePath(file).parts)


def _codes_in(module: types.ModuleType) -> Iterator[types.CodeType]:
    """Yields the code of a module's functions and of its classes' methods, with the functions in them."""
    for value in list(vars(module).values()):
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            yield from _with_inner(value.__code__)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for one in list(vars(value).values()):
                function = getattr(one, "__func__", one)
                if isinstance(function, types.FunctionType):
                    yield from _with_inner(function.__code__)


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _with_inner(one)


def has_check(code: types.CodeType) -> bool:
    """Whether a function compares what ``type`` returns with a tensor's class, by ``is``."""
    if "type" not in code.co_names:
        return False
    since, compared = _NEAR + 1, ""
    for one in dis.get_instructions(code):
        since = 0 if one.opname in ("LOAD_GLOBAL", "LOAD_NAME") and one.argval == "type" else since + 1
        if one.opname == "IS_OP" and since <= _NEAR and compared.endswith("Tensor"):
            return True
        compared = str(one.argval)
    return False


checks: TypeChecks = TypeChecks()
