"""Brings headrace's docstrings into the form that the parser of Google's style knows.

A section that says ``Raises:`` in one line, ``TypeError: no array. ValueError: another shape.``, becomes one item for
each exception.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(?P<indent> *)Raises:\n(?P<body>(?:(?P=indent) +\S.*\n?|\s*\n)+)", re.MULTILINE)
_NAMES = r"[A-Z]\w*(?:, [A-Z]\w*)*: "
_NEXT = re.compile(rf"(?<=[.;]) (?={_NAMES})")  # another exception, in the middle of a line


def items(body: str) -> list[str]:
    """The items of a section. A line that is indented further belongs to the item above it."""
    lines = [line for line in body.splitlines() if line.strip()]
    least = min(len(line) - len(line.lstrip()) for line in lines)
    joined: list[str] = []
    for line in lines:
        if joined and line[least].isspace():
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line.strip())
    return [one for item in joined for one in _NEXT.split(item)]


def normalised(docstring: str) -> str:
    """The docstring with one line for each exception."""

    def section(match: re.Match[str]) -> str:
        indent = match["indent"]
        made = [item if re.match(_NAMES, item) else f"Exception: {item}" for item in items(match["body"])]
        return "\n".join([f"{indent}Raises:", *(f"{indent}    {item}" for item in made), "", ""])

    return _SECTION.sub(section, docstring)


class Docstrings(griffe.Extension):
    """Called by griffe for everything that it has read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Normalises an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = normalised(obj.docstring.value + "\n").rstrip()
