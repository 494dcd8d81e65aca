"""What ``from headrace import DataLoader`` imports, and which rooms a plain loader never does."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields
from inspect import signature

import pytest
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from headrace._loading.native.loader_attributes import OwnArguments
from support import WATCHDOG_S

#: All of them. What a method needs, it imports: add no room here that a program may never use.
FOR_THE_CLASS = {
    "headrace",
    "headrace._base",
    "headrace._base.lazy_names",
    "headrace._base.version",
    "headrace._base.checks",
    "headrace._loading",
    "headrace._loading.integrations",
    "headrace._loading.integrations.accelerate_hook",
    "headrace._loading.native",
    "headrace._loading.native.loader_attributes",
    "headrace._reports",
    "headrace._reports.routes",
    "headrace._reports.routes.report_methods",
    "headrace.loader",
    "headrace._reports.html",
    "headrace._reports.html.report_method",
    "headrace.datasets",
    "headrace.datasets.tar_stream",
    "headrace.datasets.tar_stream.loader_hooks",
    "headrace._loading.autotune",
    "headrace._loading.autotune.tuned_attributes",
}

#: Rooms that an epoch of JPEG files does not need.
NOT_FOR_AN_EPOCH = {
    "headrace._cli",
    "headrace._loading.fallback",
    "headrace.datasets.lmdb",
    "headrace.datasets.opening",
    "headrace.ops",
    "headrace._oracle",
    "headrace.pillow",
    "headrace.datasets.tar_shards",
    "headrace.datasets.tables",
    "headrace._loading.bottleneck",
}

CLASS = """
import sys, torch
before = set(sys.modules)
from headrace import DataLoader
print(sorted(set(sys.modules) - before))
"""

EPOCH = """
import io, sys, torch
from PIL import Image
from headrace import EncodedImages, DataLoader, transforms
file = io.BytesIO()
Image.new("RGB", (40, 30)).save(file, "JPEG")
transform = transforms.Compose([transforms.RandomResizedCrop(16), transforms.ToTensor()])
loader = DataLoader(EncodedImages([file.getvalue()] * 4, transform=transform), 2, shuffle=True, num_workers=1)
assert loader.native and len(list(loader)) == 2
loader.close()
print(sorted(sys.modules))
"""


def modules_of(code: str) -> set[str]:
    """The names of modules that a new process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S)
    assert done.returncode == 0, done.stderr
    return set(ast.literal_eval(done.stdout))


@pytest.mark.processes
def test_the_class_alone_imports_little() -> None:
    assert modules_of(CLASS) == FOR_THE_CLASS


@pytest.mark.processes
def test_an_epoch_imports_no_room_that_it_does_not_need() -> None:
    modules = modules_of(EPOCH)
    assert "headrace._engine.engine" in modules
    assert modules & NOT_FOR_AN_EPOCH == set()
    assert not [name for name in modules if name.split(".")[0] in ("torchvision", "timm", "transformers", "fsspec")]


@pytest.mark.processes
def test_a_torch_that_is_too_old_is_refused_in_one_sentence() -> None:
    code = "import torch; del torch.accelerator; torch.__version__ = '2.5.1'; from headrace import DataLoader"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S)
    said = "ImportError: headrace needs torch 2.6 or newer, not 2.5.1: pip install --upgrade torch"
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == said


def test_the_own_arguments_are_those_that_torch_does_not_have() -> None:
    ours, theirs = (set(signature(one.__init__).parameters) for one in (DataLoader, TorchDataLoader))
    assert {one.name for one in fields(OwnArguments)} == ours - theirs - {"rank", "world_size"}
