"""Fills the column "speed" of docs/transforms.md from bench/results/transforms.json.

    python -m bench.transforms.page

A row that was not measured gets a dash, and so does one that lacks the column.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "transforms.md"
FIGURES = REPOSITORY / "bench" / "results" / "transforms.json"
ABSENT = "\u2013"
#: Names, where it runs on the CPU and on a device, the speed if the row has it already, the reason.
_ROW = re.compile(r"^\| (`.+?`|all others) \| (\w+) \| (\w+) \| (?:(\u2013|\d+(?:\.\d+)?) \| )?(.*?) ?\|$")
_HEADER = re.compile(r"^\| (transform|processor) \| on the CPU \| on a device \|(?: speed \|)? (why.*) \|$")


def figures(file: Path = FIGURES) -> dict[str, Any]:
    """Returns what was measured: heading -> name -> figures; nothing where there is no file."""
    made: dict[str, Any] = json.loads(file.read_text())["rows"] if file.exists() else {}
    return made


def shown(found: dict[str, Any]) -> str:
    """How many times as fast as torch's loader, with two digits."""
    ratio = statistics.median(a / b for a, b in found["seconds"])
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def filled(page: str, rows: dict[str, Any]) -> str:
    """Returns the page with the speeds of the rows that were measured; a row of several names has its first one's."""
    lines, heading, in_table = [], "", False
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            in_table = False
        if header := _HEADER.match(line):
            in_table = True
            line = f"| {header[1]} | on the CPU | on a device | speed | {header[2]} |"
        elif in_table and set(line) <= set("|-"):
            line = "|---" * 5 + "|"
        elif in_table and (row := _ROW.match(line)):
            measured = rows.get(heading, {})
            name = next((name for name in re.findall(r"`(\w+)`", row[1]) if name in measured), None)
            speed = ABSENT if name is None else shown(measured[name])
            line = f"| {row[1]} | {row[2]} | {row[3]} | {speed} | {row[5]} |".replace("|  |", "| |")
        lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(), figures()))
