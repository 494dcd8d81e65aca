"""A comparison as a table: for a terminal of 80 columns, and in Markdown."""

from __future__ import annotations

import textwrap

from headrace._cli.bench.loaders import BASELINE
from headrace._cli.bench.result import Result, Series

_WIDTH = 80


def terminal(result: Result) -> str:
    """Returns the comparison as text; no line is wider than 80 columns, except for a word that is."""
    lines = [f"{'loader':<12}{'workers':>8}{'samples/s':>12}{'smallest to largest':>25}{'times torch':>15}"]
    before = None
    for name, count, one in result.sort_series():
        if before is not None and count != before:
            lines.append("")
        before = count
        row = f"{name:<12}{count:>8}{one.median:>12,.0f}{_spread(one):>25}{_times(result, name, count):>15}"
        lines.append(row.rstrip())
    return "\n".join([*_wrap_lines(_about(result)), "", *lines, "", *_wrap_lines(_below(result))])


def markdown(result: Result) -> str:
    """Returns the comparison as a page of Markdown."""
    lines = ["# headrace bench", "", *_about(result)[:1], "", *(f"- {line}" for line in _about(result)[1:]), ""]
    lines += ["| loader | workers | samples/s | smallest to largest | times torch |", "|---|---:|---:|---:|---:|"]
    lines += [
        f"| {name} | {count} | {one.median:,.0f} | {_spread(one)} | {_times(result, name, count)} |"
        for name, count, one in result.sort_series()
    ]
    return "\n".join([*lines, "", *(f"{line}  " for line in _below(result)), ""])


def _spread(one: Series) -> str:
    return f"{one.least:,.0f} to {one.most:,.0f}"


def _times(result: Result, name: str, count: int) -> str:
    ratio = result.ratio(name, count)
    return "" if ratio is None or name == BASELINE else f"{ratio:.2f}"


def _about(result: Result) -> list[str]:
    part = "all" if result.timed == result.samples else f"{result.timed:,} of"
    return [
        f"{result.dataset}: {result.kind}, {part} {result.samples:,} samples, batches of {result.batch_size}, "
        f"transforms: {result.recipe}",
        f"Equality first: {result.equality}.",
    ]


def _below(result: Result) -> list[str]:
    machine = result.machine
    rounds = f"{result.rounds} interleaved rounds" if result.rounds != 1 else "1 round"
    partial = " The measurement was interrupted: partial results." if result.interrupted else ""
    return [
        f"Median of {rounds} of whole epochs; workers: torch's are processes, headrace's are threads; the files were "
        f"read before, and are in memory where they fit.{partial}",
        f"{machine['cpu']}, {machine['usable_cores']} of {machine['cores']} cores usable; headrace "
        f"{machine['headrace']}, torch {machine['torch']}, Pillow {machine['Pillow']}, Python {machine['python']}.",
        *result.notes,
    ]


def _wrap_lines(lines: list[str]) -> list[str]:
    return [
        part for line in lines for part in textwrap.wrap(line, _WIDTH, break_long_words=False, break_on_hyphens=False)
    ]
