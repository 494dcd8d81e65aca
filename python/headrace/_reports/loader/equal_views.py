"""Finds the views of a recipe that are made by equal transforms, for a table that names them once."""

from __future__ import annotations

import re
from typing import NamedTuple

from headrace._recipe.steps.recipe import Recipe

_DRAW = re.compile(r"\(draw=\d+\)|(?:, )?\bdraw=\d+\b")
_DRAWN, _CONSTANT = re.compile(r"Drawn\(column=\d+\)"), re.compile(r"(?:draw=)?Constant\(value=([^()]*)\)")
#: The fields of steps and columns that hold the number of a column.
_COLUMN = re.compile(r"\b((?:draw|column|sigma|first|drawn|way)=|among=\()(\d+)\b(?!\.)")
_RUN = 3  # views in a row, from which on they are written "3 to 5"


class EqualViews(NamedTuple):
    """Views of one transform.

    Attributes:
        views: their positions in the recipe, in order.
        label: ``"view 1"``, ``"views 3 to 10"``, ``"views 'a' and 'b'"``.
    """

    views: list[int]
    label: str


def without_draws(how: str) -> str:
    """Returns what a transform was lowered to without the numbers of its draws."""
    plain = _CONSTANT.sub(r"\1", _DRAWN.sub("drawn", how))
    return _DRAW.sub("", plain).replace("(, ", "(")


def names_of(recipe: Recipe) -> list[str]:
    """Returns the names of a recipe's views as text, or their numbers from 1."""
    return [repr(one) for one in recipe.view_names or range(1, len(recipe.views) + 1)]


def equal_views(recipe: Recipe) -> list[EqualViews]:
    """Returns the views of a recipe, those of equal transforms together, in the order of the first of each."""
    found: dict[str, list[int]] = {}
    for number, text in enumerate(_view_texts(recipe)):
        found.setdefault(text, []).append(number)
    groups: list[list[int]] = []
    for same in found.values():  # equal texts, and equal values of all bytes
        rest = same
        while rest:
            one = [n for n in rest if recipe.views[n].maps_bytes_as(recipe.views[rest[0]])]
            groups.append(one)
            rest = [n for n in rest if n not in one]
    return [EqualViews(one, _label_views(recipe, one)) for one in sorted(groups)]


def _view_texts(recipe: Recipe) -> list[str]:
    """Returns all that a view's steps and columns say, with the numbers of columns counted from the view's first."""
    views = recipe.views
    used = [{int(number) for _, number in _COLUMN.findall(repr(one.steps))} for one in views]
    common = set.intersection(*used) if len(used) > 1 else set()
    firsts = [min(one - common, default=None) for one in used]
    ends = [*sorted({first for first in firsts if first is not None}), len(recipe.columns)]
    texts = []
    for one, first in zip(views, firsts, strict=True):
        own = () if first is None else recipe.columns[first : ends[ends.index(first) + 1]]
        shapes = [variant.shape for variant in one.variants or (one,)]
        texts.append(_count_from_first(repr((one.names, one.steps, own, shapes, one.kind)), first))
    return texts


def _count_from_first(text: str, first: int | None) -> str:
    if first is None:
        return text

    def counted(match: re.Match[str]) -> str:
        number = int(match[2])
        return f"{match[1]}+{number - first}" if number >= first else match[0]

    return _COLUMN.sub(counted, text)


def _label_views(recipe: Recipe, views: list[int]) -> str:
    names = names_of(recipe)
    parts: list[str] = []
    rest = list(views)
    while rest:
        length = next((n for n in range(1, len(rest)) if rest[n] != rest[0] + n), len(rest))
        run, rest = rest[:length], rest[length:]
        if length >= _RUN:
            parts.append(f"{names[run[0]]} to {names[run[-1]]}")
        else:
            parts += [names[one] for one in run]
    if len(parts) == 1:
        return f"{'view' if len(views) == 1 else 'views'} {parts[0]}"
    return f"views {', '.join(parts[:-1])} and {parts[-1]}"
