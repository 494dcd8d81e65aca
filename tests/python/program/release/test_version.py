"""The version is written in one place, and what else names it agrees."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import headrace

ROOT = Path(__file__).resolve().parents[4]


def test_the_package_has_the_version_of_the_module() -> None:
    assert version("headrace") == headrace.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", headrace.__version__)


def test_the_citation_names_it() -> None:
    assert f"version: {headrace.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_condas_recipe_names_it_and_what_the_package_needs() -> None:
    recipe = (ROOT / "tools/release/conda/recipe.yaml").read_text("utf-8")
    assert f'  version: "{headrace.__version__}"\n' in recipe
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    needed = re.findall(r'"([^"]+)"', re.findall(r"^requires = \[(.*)\]$", project, re.MULTILINE)[0])
    needed += re.findall(r'"([^"]+)"', re.findall(r"^dependencies = \[(.*)\]$", project, re.MULTILINE)[0])
    for requirement in needed:
        name, least = requirement.split(">=")
        assert f"    - {name.lower().replace('torch', 'pytorch')} >={least}\n" in recipe, requirement


def test_no_other_file_sets_it() -> None:
    assert not re.search(r"^version\s*=", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert "VERSION" not in re.findall(r"project\((.*?)\)", (ROOT / "CMakeLists.txt").read_text())[0]
