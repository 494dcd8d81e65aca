"""The index of docs/decisions lists every decision by its title, links to files only, and names missing numbers."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
LIST, _, MISSING = INDEX.partition("## Missing numbers")
PAGES = sorted(FOLDER.glob("[0-9]*.md"))


def title_of(page: Path) -> str:
    """Its first line, without the mark of a heading: "0042: Progressive JPEG decoder"."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def test_numbers_are_used_once() -> None:
    numbers = [page.name[:4] for page in PAGES]
    assert PAGES and len(set(numbers)) == len(numbers)
    assert all(re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", page.name) for page in PAGES)
    assert all(title_of(page).startswith(f"{page.name[:4]}: ") for page in PAGES)


def test_each_decision_has_a_line_with_its_title() -> None:
    entries = re.findall(r"^- \[(.+)\]\((\d{4}-[^)]+)\): \S", LIST, flags=re.MULTILINE)
    assert sorted(entries, key=lambda entry: entry[1]) == [(title_of(page), page.name) for page in PAGES]


def test_links_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)#]+)", INDEX)
    assert len(targets) >= len(PAGES)
    assert not [target for target in targets if not (FOLDER / target).is_file()]


def test_other_links_show_the_number_of_their_page() -> None:
    for text, target in re.findall(r"\[(\d{4})\]\(([^)]+)\)", INDEX):
        assert target.startswith(f"{text}-"), (text, target)


def test_missing_numbers_are_named() -> None:
    used = {int(page.name[:4]) for page in PAGES}
    missing = [f"{number:04d}" for number in range(1, max(used) + 1) if number not in used]
    section = MISSING.partition("\n## ")[0]
    assert not [number for number in missing if number not in section]
    first = section.strip().partition(" were never used")[0]
    assert re.findall(r"\d{4}", first) == missing  # and none that has a page
