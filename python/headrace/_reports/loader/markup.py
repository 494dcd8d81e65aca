"""Pieces of HTML: text, tables, bars, a line over time. Every value is escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

import numpy as np

_BINS = 24
_POINTS = 120


def text(value: object) -> str:
    """Returns a value as HTML."""
    return html.escape(str(value))


def preformatted(value: object) -> str:
    """Returns lines as HTML; long ones are wrapped, where a notebook would cut them off."""
    return f'<pre style="white-space:pre-wrap">{text(value)}</pre>'


def section(name: str, title: str, *content: str) -> str:
    """Returns a section with a heading; "" without content."""
    inner = "".join(content)
    return f'<section id="{name}"><h2>{text(title)}</h2>{inner}</section>' if inner else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: int = 0) -> str:
    """Returns a table that scrolls sideways where the page is narrow; its last `numbers` columns are numbers."""
    first = len(heads) - numbers

    def cells(tag: str, values: Sequence[object]) -> str:
        return "".join(
            f"<{tag}{' class=n' if place >= first else ''}>{text(value)}</{tag}>" for place, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class=scroll><table><thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table></div>"


def definition_list(rows: Iterable[tuple[object, object]]) -> str:
    """Returns names and values."""
    return "<dl>" + "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in rows) + "</dl>"


def bar_chart(rows: Sequence[tuple[str, float, str, str]]) -> str:
    """Returns horizontal bars of (name, share of the longest, label, class of the colour)."""
    return "".join(
        f'<div class=bar><span class=name>{text(name)}</span><span class=track><i class="{colour}" '
        f'style="width:{100 * share:.1f}%"></i></span><span class=value>{text(label)}</span></div>'
        for name, share, label, colour in rows
    )


def histogram(title: str, values: Sequence[float], unit: str) -> str:
    """Returns upright bars over bins of equal width up to the 99th percentile, with quantiles below."""
    held = np.asarray(values, np.float64)
    if not len(held):
        return ""
    top = float(np.quantile(held, 0.99))
    counts, edges = np.histogram(np.minimum(held, top), _BINS, (float(held.min()), max(top, float(held.min()) + 1e-9)))
    most = max(1, int(counts.max()))
    columns = "".join(
        f'<i style="height:{100 * count / most:.1f}%" title="{_shorten(edges[n])} to {_shorten(edges[n + 1])} '
        f'{text(unit)}: {count} files"></i>'
        for n, count in enumerate(counts.tolist())
    )
    low, half, high = np.quantile(held, [0.05, 0.5, 0.95])
    quantiles = f"5%: {_shorten(low)}, median: {_shorten(half)}, 95%: {_shorten(high)}"
    below = f"{quantiles}, largest: {_shorten(held.max())} {text(unit)}"
    ends = f"<div class=ends><span>{_shorten(edges[0])}</span><span>{_shorten(edges[-1])} {text(unit)}</span></div>"
    return (
        f"<figure><figcaption>{text(title)}</figcaption><div class=columns>{columns}</div>{ends}<p>{below}</p></figure>"
    )


def _shorten(value: float) -> str:
    return (
        f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    )


def time_chart(times: Sequence[float], counts: Sequence[int], unit: str) -> str:
    """Returns a line of units a second over time, as an SVG, with its axes in HTML."""
    if len(times) < 3:
        return ""
    ends, made = np.asarray(times, np.float64), np.cumsum(counts)
    edges = np.linspace(0.0, ends[-1], min(_POINTS, max(2, len(ends) // 2)) + 1)
    reached = np.interp(edges, np.concatenate([[0.0], ends]), np.concatenate([[0.0], made]))
    rates = np.diff(reached) / np.maximum(np.diff(edges), 1e-9)
    most = max(float(rates.max()), 1e-9)
    middles = (edges[:-1] + edges[1:]) / 2
    points = " ".join(
        f"{100 * x / edges[-1]:.2f},{100 - 96 * y / most:.2f}" for x, y in zip(middles, rates, strict=True)
    )
    return (
        f"<figure class=line><div class=ends><span>{most:,.0f} {text(unit)}/s at most</span></div>"
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" role=img aria-label="{text(unit)} a second over time">'
        f'<polyline points="{points}"/></svg>'
        f"<div class=ends><span>0 s</span><span>{edges[-1]:,.2f} s</span></div></figure>"
    )
