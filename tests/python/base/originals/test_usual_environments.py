"""Where nobody has replaced a function, none counts as replaced: in no class that headrace recognises."""

from __future__ import annotations

import importlib
import inspect
import random
import sys
from types import ModuleType
from typing import Any

import numpy
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

import headrace
import headrace.pillow
from headrace._base.originals.called_functions import Reached
from headrace._base.originals.originality import is_own

CALLED = ("__call__", "forward", "__getitem__", "__getitems__", "__array_interface__")


def classes(*modules: str) -> list[type]:
    found: dict[Any, None] = {}
    for name in modules:
        module = importlib.import_module(name)
        found |= dict.fromkeys(one for one in vars(module).values() if inspect.isclass(one))
    return [
        one
        for one in found
        if callable(one) and (hasattr(one, "forward") or issubclass(one, Dataset) or "__call__" in vars(one))
    ]


def replaced(roots: list[type]) -> list[str]:
    Image.preinit()
    plugin = importlib.import_module("PIL.JpegImagePlugin")
    reached = Reached()
    reached.follow([*roots, plugin.JpegImageFile], CALLED, [Image.open], [])
    assert len(reached.locations) > 50
    return list(map(str, reached.replaced))


LIBRARIES = [
    ("torchvision.transforms",),
    ("torchvision.transforms.v2",),
    ("torchvision.datasets.folder", "torchvision.datasets.cifar", "torchvision.datasets.mnist"),
    ("torchvision.datasets",),
    ("headrace.transforms", "headrace"),
    ("torch.utils.data",),
]


@pytest.mark.parametrize("modules", LIBRARIES, ids=" ".join)
@pytest.mark.parametrize("installed", [False, True], ids=["plain", "opened deferred"])
def test_nothing_is_replaced(torchvision: ModuleType, modules: tuple[Any, ...], installed: bool) -> None:
    if installed:
        headrace.pillow.install()
    try:
        assert replaced(classes(*modules)) == []
    finally:
        headrace.pillow.uninstall()


@pytest.mark.parametrize("module", [torch, numpy, random], ids=lambda one: one.__name__)
def test_no_function_of_a_module_is_replaced(module: ModuleType) -> None:
    functions = {name: one for name, one in vars(module).items() if inspect.isroutine(one) and name[0] != "_"}
    others = {name for name, one in functions.items() if not is_own(one, module, name)}
    assert others <= {"sym_sqrt", "to_dlpack"}  # made under other names; no sample's code calls them
    assert not is_own(lambda tensors: None, module, next(iter(functions)))


def test_no_method_of_tensors_is_replaced() -> None:
    methods = {name: one for name, one in vars(torch.Tensor).items() if inspect.isroutine(one) and name[:2] != "__"}
    assert len(methods) > 20
    home = sys.modules["torch._tensor"]
    assert [name for name, one in methods.items() if not is_own(one, home, f"Tensor.{name}")] == []
    assert not is_own(lambda tensor: None, home, "Tensor.backward")


def test_nothing_of_timm_is_replaced(timm: ModuleType) -> None:
    assert (
        replaced(
            classes("timm.data.transforms", "timm.data.auto_augment", "timm.data.random_erasing", "timm.data.mixup")
        )
        == []
    )


def test_nothing_of_transformers_is_replaced(torchvision: ModuleType) -> None:
    transformers = pytest.importorskip("transformers")
    assert replaced([transformers.ViTImageProcessor, transformers.CLIPImageProcessor]) == []
