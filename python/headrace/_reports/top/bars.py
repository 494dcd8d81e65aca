"""Bars, curves and numbers as text, for terminals with and without Unicode."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

_LEVELS = "▁▂▃▄▅▆▇█"

#: Colours of the terminal's own palette: they suit its background, dark or light.
GOOD, BAD, QUIET = "green", "red", "dim"


def strip_control_characters(text: str) -> str:
    """Returns text of another process without what would control the terminal."""
    return "".join(one if one.isprintable() else "?" for one in text)


def bar(share: float, width: int, styles: tuple[str, str], ascii_only: bool) -> Text:
    """Returns a bar of two parts; the first has this share of the width."""
    first = round(width * min(1.0, max(0.0, share)))
    full, empty = ("#", "-") if ascii_only else ("█", "░")
    return Text.assemble((full * first, styles[0]), (empty * (width - first), styles[1]))


def curve(values: Sequence[float], width: int, ascii_only: bool) -> str:
    """Returns the newest values as columns, the greatest as high as a line; "" where the terminal has no such marks."""
    newest = list(values)[-width:]
    top = max(newest, default=0.0)
    if ascii_only or top <= 0:
        return ""
    return "".join(_LEVELS[min(7, int(8 * max(0.0, one) / top))] for one in newest)


def per_second(speed: float) -> str:
    """Returns a speed with three digits or more."""
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"


def milliseconds(ms: float) -> str:
    """Returns a duration with three digits, in ms."""
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def seconds(duration: float) -> str:
    """Returns a duration in whole seconds, minutes or hours."""
    for unit, size in (("h", 3600), ("min", 60)):
        if duration >= 2 * size:
            return f"{duration / size:.0f} {unit}"
    return f"{duration:.0f} s"


def labelled(name: str, text: Text, width: int) -> Table:
    """Returns a text with its name before it, in a column of its own."""
    grid = Table.grid()
    grid.add_column(width=width, no_wrap=True)
    grid.add_column()
    grid.add_row(Text(name, style=QUIET), text)
    return grid
