"""Runs every Python snippet of README.md and of the pages in docs, in a folder with the images that they use."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from bench.code import page as figures

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/recipes").glob("*.md"))]
SNIPPETS = [
    (page.name, snippet)
    for page in PAGES
    for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
]


def test_there_are_snippets() -> None:
    assert {"README.md", "datasets.md"} <= {page for page, _ in SNIPPETS} and len(SNIPPETS) >= 3


@pytest.mark.parametrize(("page", "snippet"), SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippet_runs(page: str, snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = sorted((ROOT / "python/headrace/_cli/demo/photos").glob("*.jpg"))
    for i in range(70):
        folder = tmp_path / "train" / ("even" if i % 2 == 0 else "odd")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(photos[i % len(photos)], folder / f"{i}.jpg")
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, page, "exec"), {})


def test_figures_of_code_are_those_that_were_measured() -> None:
    for path, text in figures.pages(figures.figures()).items():
        assert path.read_text() == text, f"{path.name}: run python -m bench.code.page"


def test_a_row_that_a_page_lacks_is_an_error() -> None:
    found = {f"train, {cores}": {"seconds": [[3.0, 1.0]], "memory": [1, 1]} for cores in (1, 2)}
    assert figures.filled("| mine | 1 (2) | 1 (2) |\n", {"mine": "train"}, found) == (
        "| mine | 3.00 (3.00 to 3.00) | 3.00 (3.00 to 3.00) |\n"
    )
    with pytest.raises(ValueError, match="0 rows of the page begin with 'other'"):
        figures.filled("| mine | 1 (2) | 1 (2) |\n", {"other": "train"}, found)
