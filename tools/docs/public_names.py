"""Lists headrace's public names, and says which lack a docstring or an entry in the built reference.

Usage: python tools/docs/public_names.py [FOLDER_OF_THE_SITE]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[2]


def public_names() -> dict[str, str | None]:
    """Dotted names and their docstrings: ``headrace.__all__``, and ``__all__`` of the modules that are in it. A name
    that both have has one entry, as ``headrace.name``."""
    package = griffe.load("headrace", search_paths=[str(ROOT / "python")])
    found: dict[str, str | None] = {}
    for name in package.exports or ():
        path = f"{package.path}.{name}"
        if name in package.modules:
            module = package.modules[name]
            found[path] = _docstring(module)
            for inner in set(module.exports or ()) - set(package.exports or ()):
                found[f"{path}.{inner}"] = _docstring(module[str(inner)])
        else:
            found[path] = _docstring(package[str(name)])
    return found


def _docstring(thing: griffe.Object | griffe.Alias) -> str | None:
    return thing.docstring.value if thing.docstring is not None else None


def complaints(site: Path) -> list[str]:
    """A sentence for each public name that is not documented, or not in the reference of a built site."""
    pages = sorted((site / "reference").glob("*.html"))
    anchors = {anchor for page in pages for anchor in re.findall(r'id="(headrace[\w.]*)"', page.read_text("utf-8"))}
    found = []
    for name, docstring in public_names().items():
        if not (docstring or "").strip():
            found.append(f"{name} has no docstring")
        if name not in anchors:
            found.append(f"{name} is not in the reference: add '::: {name}' to a page of docs/reference")
    return found


def main() -> int:
    """Prints the names, then what is wrong."""
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    if not (site / "reference").is_dir():
        print(f"{site} has no built reference: run make docs", file=sys.stderr)
        return 2
    print("\n".join(public_names()))
    wrong = complaints(site)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
