"""Pages of the site that are made of files outside docs/, the decisions, and the list of results."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"

#: A file of the repository, and the page that shows it as it is.
SHOWN = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "benchmarks/method.md",
    "bench/gpu/README.md": "benchmarks/gpu.md",
}

#: A folder of the repository, and the page that a link to it leads to.
FOLDERS = {
    "bench": "benchmarks/method.md",
    "bench/gpu": "benchmarks/gpu.md",
    "bench/results": "benchmarks/results/index.md",
    "docs": "index.md",
    "docs/decisions": "decisions/README.md",
    "docs/getting-started": "getting-started/install.md",
    "docs/reference": "reference/index.md",
}

#: The beginning of a page's path -> how much its words count in a search: guides come before decisions and results.
SEARCH = {
    "getting-started/": 4,
    "recipes/": 2,
    "reference/": 1,
    "decisions/": 0.2,
    "benchmarks/": 0.2,
    "architecture.md": 0.3,
    "changelog.md": 0.2,
    "contributing.md": 0.3,
}
GUIDE = 3


def search_boost(page: str) -> float:
    """How much the words of a page count in a search."""
    return next((boost for begin, boost in SEARCH.items() if page.startswith(begin)), GUIDE)


def page_of(path: str) -> str | None:
    """The page that shows a file or folder of the repository; None: there is none."""
    if path in FOLDERS:
        return FOLDERS[path]
    if path in SHOWN:
        return SHOWN[path]
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/")
    if path.startswith("bench/results/") and path.endswith(".md"):
        return f"benchmarks/results/{Path(path).name}"
    return None


def file_of(page: str) -> str:
    """The file of the repository that a page is made of: links on the page are relative to it."""
    for path, shown in SHOWN.items():
        if shown == page:
            return path
    if page.startswith("benchmarks/results/"):
        return f"bench/results/{Path(page).name}"
    return f"docs/{page}"


def title_of(path: Path) -> str:
    """Its first heading of the first level."""
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return found[1] if found else path.stem


def decisions() -> list[Path]:
    """The decisions, in the order of their numbers."""
    return sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def results() -> list[Path]:
    """The tables of the benchmark's runs."""
    return sorted(RESULTS.glob("*.md"))


def list_of_results() -> str:
    """The page that lists the runs, and the measurements that have no table of their own."""
    lines = ["# Results", "", "Each run has its tables, its raw figures as JSON and, where it was drawn, a picture."]
    lines += ["[How they are measured](../README.md).", ""]
    lines += ["| run | machine and date | data sets |", "|---|---|---|"]
    for path in results():
        lines.append(f"| [{title_of(path)}]({path.name}) | {_machine(path)} | {', '.join(_data_sets(path))} |")
    lines += ["", "Measurements with raw figures alone:", ""]
    others = sorted(path.stem for path in RESULTS.glob("*.json") if not path.with_suffix(".md").exists())
    lines += [f"- [{name}.json]({name}.json)" for name in others]
    return "\n".join([*lines, ""])


def page_of_result(path: Path) -> str:
    """One run: its verdict, its picture, then its tables."""
    title, verdict, rest = path.read_text(encoding="utf-8").split("\n\n", 2)
    lines = [title, "", verdict, "", f"[Raw figures]({path.stem}.json), [how they were measured](../README.md)."]
    picture = path.with_suffix(".png")
    if picture.exists():
        lines += ["", f"[![Images per second of each contender]({picture.name})]({picture.name})"]
    return "\n".join([*lines, "", rest])


def _machine(path: Path) -> str:
    """``AMD EPYC, 2 CPUs; 2026-11-22``, of the line below the heading."""
    found = re.search(r"^(.+ CPUs), .*; (\d{4}-\d\d-\d\d); ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return f"{found[1]}; {found[2]}" if found else ""


def _data_sets(path: Path) -> list[str]:
    named = re.findall(r"^### ([\w-]+), ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return list(dict.fromkeys(named))
