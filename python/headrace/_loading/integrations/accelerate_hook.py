"""Has Accelerate prepare headrace's loaders by headrace's own function; nothing of Accelerate is imported for it.

Accelerate may be imported before headrace, after it, or when loaders exist already. See decision 0010.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace._loading.integrations.loader_handoff import OwnLoader

_MODULE = "accelerate.accelerator"


class AfterImport(MetaPathFinder):
    """Calls a function with a module once that has been imported.

    Args:
        name: the module's dotted name.
    """

    def __init__(self, name: str, function: Callable[[ModuleType], None]) -> None:
        self._name, self._function, self._searching = name, function, False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name or self._searching:
            return None
        self._searching = True
        try:
            spec = find_spec(fullname)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_call(module: ModuleType) -> None:
                execute(module)
                sys.meta_path[:] = [one for one in sys.meta_path if one is not self]
                self._function(module)

            spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec


def install_hook(ours: type[OwnLoader]) -> None:
    """Makes Accelerate prepare loaders of the class `ours` as headrace does, now or when it is imported."""
    module = sys.modules.get(_MODULE)
    if hasattr(module, "prepare_data_loader"):
        assert module is not None
        _replace_prepare_data_loader(module, ours)
    else:
        sys.meta_path.insert(0, AfterImport(_MODULE, functools.partial(_replace_prepare_data_loader, ours=ours)))


def _replace_prepare_data_loader(module: ModuleType, ours: type[OwnLoader]) -> None:
    stock = module.prepare_data_loader

    @functools.wraps(stock)
    def prepare_data_loader(dataloader: object, *args: object, **options: object) -> object:
        if not isinstance(dataloader, ours):
            return stock(dataloader, *args, **options)
        from headrace._loading.integrations import accelerate_prepare

        return accelerate_prepare.prepare_for_accelerate(stock, ours, dataloader, *args, **options)

    module.prepare_data_loader = prepare_data_loader  # type: ignore[attr-defined]
