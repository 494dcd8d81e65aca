"""README.md and docs say how to install what there is: a checkout before the first release, the package from it on."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from headrace._base.version import RELEASED

ROOT = Path(__file__).resolve().parents[4]
TEXTS = runpy.run_path(str(ROOT / "tools/release/install_texts.py"))
# The name as an argument, not as a file or a folder.
BY_NAME = re.compile(r"\b(?:pip|uv|conda) (?:install|add)(?: +[^\s#`,;()]+)* +['\"]?headrace\b(?![-/])")


def test_the_pages_are_as_the_switch_says() -> None:
    assert TEXTS["released"]() is RELEASED
    pages = TEXTS["texts"]()
    assert TEXTS["written"](pages, RELEASED) == pages, "run python tools/release/install_texts.py"


def test_the_switch_turns_all_and_back() -> None:
    before = TEXTS["written"](TEXTS["texts"](), False)
    after = TEXTS["written"](before, True)
    assert TEXTS["written"](after, False) == before
    assert TEXTS["written"](after, True) == after
    for page, text in after.items():
        assert not re.search(
            r"no release|from the first release on|pip install \.\n", text.partition("## With conda")[0], re.I
        )
        assert "pip install headrace\n" in text, page


def test_a_text_that_a_page_lacks_is_an_error() -> None:
    pages = TEXTS["texts"]()
    pages["README.md"] = "# headrace\n"
    with pytest.raises(ValueError, match=r"README.md must have one of two texts once"):
        TEXTS["written"](pages, True)


@pytest.mark.skipif(RELEASED, reason="the package index has headrace")
def test_nothing_names_a_package_that_the_index_does_not_have() -> None:
    """Until there is a release, no text tells users to install the name from the index: it may belong to others."""
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "bench").glob("*.md")]
    code = [*(ROOT / "python").rglob("*.py"), *(ROOT / "examples").glob("*")]
    both = {ROOT / "python/headrace/_base" / name for name in ("messages.py", "version.py")}
    both |= set((ROOT / "docs/decisions").glob("*.md"))  # they say what was
    found = {}
    for path in {*pages, *code} - both:
        for line in path.read_text("utf-8", errors="ignore").splitlines():
            if BY_NAME.search(line) and "rom the first release on" not in line:
                found[f"{path.relative_to(ROOT)}: {line[:100]}"] = True
    assert found == {}


def test_the_pattern_finds_it() -> None:
    for line in (
        "pip install headrace",
        "uv add torch headrace",
        "pip install 'headrace[top]'",
        "conda install -c conda-forge headrace",
    ):
        assert BY_NAME.search(line), line
    for line in ("pip install ./headrace", "uv add ../headrace", "pip install dist/headrace-*.whl", "cd headrace"):
        assert not BY_NAME.search(line), line
