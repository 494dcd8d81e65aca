"""The extras that texts and errors name exist, errors name what is in them, and the page on installing lists all."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from headrace._base import messages

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).resolve().parents[4]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
CODE = sorted((ROOT / "python/headrace").rglob("*.py"))
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md")), ROOT / "bench/README.md"]
NAMED = re.compile(r"(?:\bheadrace|[\"' ]\.)\[([a-z0-9, _-]+)\]|\bextras? \[?`([a-z0-9_-]+)`")


def names(text: str) -> set[str]:
    """The extras that a text names."""
    found = {name.strip() for listed, one in NAMED.findall(text) for name in (listed or one).split(",")}
    return found


def package(requirement: str) -> str:
    """A requirement without its versions."""
    return re.split(r"[<>=!~; ]", requirement)[0]


def commands() -> list[tuple[str, list[Any]]]:
    """The arguments of each call of install_command, with its file."""
    found = []
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "install_command":
                found.append((path.name, [ast.literal_eval(argument) for argument in node.args]))
    return found


def test_each_extra_that_is_named_exists() -> None:
    wrong = {str(path.relative_to(ROOT)): sorted(names(path.read_text("utf-8")) - set(EXTRAS)) for path in CODE + PAGES}
    assert {path: extras for path, extras in wrong.items() if extras} == {}


def test_the_pattern_finds_them() -> None:
    text = """pip install 'headrace[a,b]', `pip install ".[c]"`, the extra [`d`](install.md#extras) or the extra `e`"""
    assert names(text) == {"a", "b", "c", "d", "e"}


def test_errors_name_what_is_in_the_extra() -> None:
    called = commands()
    assert len([arguments for _, arguments in called if arguments]) >= 8
    for file, arguments in called:
        if arguments:
            extra, *packages = arguments
            listed = EXTRAS[extra]
            assert [package(one) for one in packages] == [package(one) for one in listed], file
            assert set(packages) <= {*listed, *map(package, listed)}, file


def test_all_is_all() -> None:
    (line,) = EXTRAS["all"]
    assert names(line) == set(EXTRAS) - {"all"}


def test_the_page_lists_each() -> None:
    page = (ROOT / "docs/getting-started/install.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([a-z0-9]+)` \| (.*?) \|", page, re.MULTILINE))
    assert set(rows) == set(EXTRAS)
    for extra, requirements in EXTRAS.items():
        if extra != "all":
            assert {package(one).partition("[")[0] for one in requirements} <= set(rows[extra].split(", ")), extra


def test_commands_before_and_after_the_first_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "RELEASED", False)
    assert messages.install_command("remote", "fsspec[http]") == "pip install 'fsspec[http]'"
    assert messages.install_command() == "pip install . in a checkout, or with a wheel's file"
    monkeypatch.setattr(messages, "RELEASED", True)
    assert messages.install_command("remote", "fsspec[http]") == "pip install 'headrace[remote]'"
    assert messages.install_command() == "pip install headrace"


def test_developers_tools_are_groups() -> None:
    """Extras are for users: what tests, checks and documentation need is in no wheel's metadata."""
    assert {"test", "trainers", "dev", "docs", "release"} <= set(PROJECT["dependency-groups"])
    assert not {"test", "trainers", "dev", "docs", "release"} & set(EXTRAS)
