"""Programs that compare types with ``is`` are found: they get tensors with values."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch

from headrace._loading.doors.type_checks import TypeChecks, _is_of_program, has_check


def compares(x: object) -> bool:
    return type(x) is torch.Tensor


def refuses(x: object) -> None:
    if type(x) is not torch.Tensor:
        raise TypeError("no tensor")


def compares_parameter(x: object) -> bool:
    return x is not None and type(x) is not torch.nn.Parameter and type(x) is torch.Tensor


def compares_both(x: object, y: object) -> bool:
    return type(x) is type(y)


def equals(x: object) -> bool:
    return type(x) == torch.Tensor  # noqa: E721 - what programs write


def compares_number(x: object) -> bool:
    return type(x) is int


def isinstances(x: object) -> bool:
    return x is not None and isinstance(x, torch.Tensor)


@pytest.mark.parametrize("function", [compares, refuses, compares_parameter])
def test_comparisons_by_is_are_found(function: Any) -> None:
    assert has_check(function.__code__)


@pytest.mark.parametrize("function", [equals, compares_number, compares_both, isinstances])
def test_others_are_not(function: Any) -> None:
    assert not has_check(function.__code__)


def test_modules_are_looked_at_when_they_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    found = TypeChecks()
    module = types.ModuleType("a_programs_module")
    module.__file__ = "/home/somebody/a_programs_module.py"
    exec("import torch\nclass A:\n    @staticmethod\n    def look(x): return type(x) is torch.Tensor", vars(module))
    monkeypatch.setitem(sys.modules, "a_programs_module", module)
    found._modules = {name for name in sys.modules if name != "a_programs_module"}
    assert found.look() == "a_programs_module.look"


FILES = {
    ("train", "/home/somebody/project/train.py"): True,
    ("tools.site-packages_list", "/home/somebody/site-packages-list/tools.py"): True,
    ("mypackage.models", "/srv/checkout/mypackage/models.py"): True,
    ("datasets", "/home/somebody/project/datasets/__init__.py"): True,  # the program's own, named as a library is
    ("kornia.core", "/home/somebody/.local/lib/python3.11/site-packages/kornia/core.py"): False,  # pip install --user
    ("kornia.core", "/usr/lib/python3/dist-packages/kornia/core.py"): False,  # Debian's
    ("kornia.core", "/opt/conda/envs/other/lib/python3.11/site-packages/kornia/core.py"): False,  # through PYTHONPATH
    ("torch._ops", "/home/somebody/pytorch/torch/_ops.py"): False,  # a checkout
    ("torchvision.io", "/opt/packages/torchvision/io/__init__.py"): False,  # pip install --target
    ("json", types.__file__): False,
}


@pytest.mark.parametrize(("name", "file"), FILES)
def test_libraries_are_known_wherever_they_are_installed(name: str, file: str) -> None:
    module = types.ModuleType(name)
    module.__file__ = file
    assert _is_of_program(module) is FILES[name, file]
