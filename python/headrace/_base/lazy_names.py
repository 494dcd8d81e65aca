"""Public names of a package that are imported at their first use (PEP 562), and the old names of some of them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

_DROPPED_IN = "0.3"


def lazy_names(
    package: str, names: Sequence[str], homes: Mapping[str, str], old: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: the package's ``__name__``.
        names: its ``__all__``.
        homes: the module that defines each name that is not itself a module, relative to the package.
        old: former names and the present ones; reading one gives a DeprecationWarning.
    """
    former = old or {}

    def get_attribute(name: str) -> object:
        if name in former:
            text = f"{package}.{name} is {package}.{former[name]} now; the old name goes with version {_DROPPED_IN}"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return getattr(sys.modules[package], former[name])
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes.get(name, name)}")
        value = getattr(module, name) if name in homes else module
        vars(sys.modules[package])[name] = value
        return value

    def list_names() -> list[str]:
        return sorted({*names, *(name for name in vars(sys.modules[package]) if name.startswith("__"))})

    return get_attribute, list_names
