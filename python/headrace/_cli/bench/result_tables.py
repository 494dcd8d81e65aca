"""A comparison as a table: for a terminal of 80 columns, and in Markdown."""

from __future__ import annotations

import textwrap

from headrace._cli.bench.loaders import BASELINE
from headrace._cli.bench.result import Result, Series

_WIDTH = 80


def format_terminal_table(result: Result) -> str:
    """Returns the comparison as text; no line is wider than 80 columns, except for a word that is."""
    lines = [f"{'loader':<12}{'workers':>8}{'samples/s':>12}{'smallest to largest':>25}{'times torch':>15}"]
    before = None
    for name, count, one in result.sort_series():
        if before is not None and count != before:
            lines.append("")
        before = count
        row = (
            f"{name:<12}{count:>8}{one.median:>12,.0f}{_format_range(one):>25}{_format_ratio(result, name, count):>15}"
        )
        lines.append(row.rstrip())
    return "\n".join([*_wrap_lines(_header_lines(result)), "", *lines, "", *_wrap_lines(_footer_lines(result))])


def format_markdown_table(result: Result) -> str:
    """Returns the comparison as a page of Markdown."""
    lines = [
        "# headrace bench",
        "",
        *_header_lines(result)[:1],
        "",
        *(f"- {line}" for line in _header_lines(result)[1:]),
        "",
    ]
    lines += ["| loader | workers | samples/s | smallest to largest | times torch |", "|---|---:|---:|---:|---:|"]
    lines += [
        f"| {name} | {count} | {one.median:,.0f} | {_format_range(one)} | {_format_ratio(result, name, count)} |"
        for name, count, one in result.sort_series()
    ]
    return "\n".join([*lines, "", *(f"{line}  " for line in _footer_lines(result)), ""])


def _format_range(one: Series) -> str:
    return f"{one.least:,.0f} to {one.most:,.0f}"


def _format_ratio(result: Result, name: str, count: int) -> str:
    ratio = result.ratio(name, count)
    return "" if ratio is None or name == BASELINE else f"{ratio:.2f}"


def _header_lines(result: Result) -> list[str]:
    part = "all" if result.timed == result.samples else f"{result.timed:,} of"
    return [
        f"{result.dataset}: {result.kind}, {part} {result.samples:,} samples, batches of {result.batch_size}, "
        f"transforms: {result.recipe}",
        f"Equality first: {result.equality}.",
    ]


def _footer_lines(result: Result) -> list[str]:
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
