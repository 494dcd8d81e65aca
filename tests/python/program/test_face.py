"""The public names of ``import headrace``, each of which is imported at its first use."""

from __future__ import annotations

import re
import subprocess
import sys
import types

import pytest
from test_readme import ROOT

import headrace
from support import WATCHDOG_S


def test_dir_lists_the_public_names_alone() -> None:
    import headrace._engine.engine  # an internal module that is there

    assert isinstance(headrace._engine.engine, types.ModuleType)
    names = [name for name in dir(headrace) if not name.startswith("__")]
    assert names == sorted(headrace.__all__)
    assert {"__version__", "__all__", "__doc__", "__path__"} <= set(dir(headrace))


@pytest.mark.parametrize("name", headrace.__all__)
def test_each_public_name_is_there(name: str) -> None:
    value = getattr(headrace, name)
    assert value is getattr(headrace, name)
    home = value.__name__ if isinstance(value, types.ModuleType) else f"{value.__module__}.{value.__qualname__}"
    assert home.startswith("headrace.") and home.endswith(f".{name}")


@pytest.mark.parametrize("name", headrace.datasets.__all__)
def test_datasets_have_a_namespace(name: str) -> None:
    assert getattr(headrace.datasets, name) is getattr(headrace, name)
    assert name in dir(headrace.datasets)


@pytest.mark.parametrize(
    ("old", "new"),
    [("Samples", "Fields"), ("Blobs", "EncodedImages"), ("Arrays", "ImageArray"), ("Auto", "AutoWorkers")],
)
def test_an_old_name_names_the_new_one(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"headrace\.{old} is headrace\.{new} now; .* version 0\.3") as caught:
        assert getattr(headrace, old) is getattr(headrace, new)
    assert caught[0].filename == __file__
    assert old not in dir(headrace)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'headrace' has no attribute 'Dataloader'"):
        _ = headrace.Dataloader  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'Dataloader' from 'headrace'"):
        from headrace import Dataloader  # type: ignore[attr-defined] # noqa: F401


@pytest.mark.processes
def test_import_alone_needs_no_torch() -> None:
    code = "import sys, headrace; assert 'torch' not in sys.modules; headrace.DataLoader; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_the_reference_has_an_entry_for_each_public_name() -> None:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    entries = {name for page in pages for name in re.findall(r"^::: (headrace[\w.]*)$", page.read_text("utf-8"), re.M)}
    names = {f"headrace.{name}" for name in headrace.__all__}
    for name in headrace.__all__:
        value = getattr(headrace, name)
        if isinstance(value, types.ModuleType):
            names |= {f"headrace.{name}.{inner}" for inner in set(value.__all__) - set(headrace.__all__)}
    assert sorted(names - entries) == []
