"""Brings headrace's docstrings into the form that the parser of Google's style knows.

A section that says ``Raises:`` in one line, ``TypeError: no array. ValueError: another shape.``, becomes one item for
each exception.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(?P<indent> *)Raises:\n(?P<body>(?:(?P=indent) +\S.*\n?|\s*\n)+)", re.MULTILINE)
_NAME = r"[A-Z]\w*(?:Error|Warning|Exception|Interrupt)"
_ITEM = re.compile(rf"(?:(?<=\. )|(?<=; )|^)(?={_NAME}(?:, {_NAME})*: )")


def items(body: str) -> list[str]:
    """The items of a section: ``TypeError: no array. ValueError: another shape.`` has two."""
    text = " ".join(body.split())
    return [one.strip() for one in _ITEM.split(text) if one.strip()]


def normalised(docstring: str) -> str:
    """The docstring with one line for each exception."""

    def section(match: re.Match[str]) -> str:
        indent, made = match["indent"], []
        for item in items(match["body"]):
            named = re.match(rf"{_NAME}(?:, {_NAME})*: ", item)
            made.append(f"{indent}    {item}" if named else f"{indent}    Exception: {item}")
        return f"{indent}Raises:\n" + "\n".join(made) + "\n\n"

    return _SECTION.sub(section, docstring)


class Docstrings(griffe.Extension):
    """Called by griffe for everything that it has read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Normalises an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = normalised(obj.docstring.value + "\n").rstrip()
