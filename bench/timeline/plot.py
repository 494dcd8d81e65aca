"""Draws a few consecutive batches of a trace: one row per thread or stream, coloured by stage.

python -m bench.timeline.plot FOLDER/trace.json.gz [--batches 5] [--out FOLDER/timeline.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.patches import Patch

from bench.timeline.shares import Bar, Trace, bars, rows_of
from headrace._reports.loader.chrome_trace import read_trace

# Stage: colour, in the order of the legend. Spans that surround others, and waiting, are pale.
COLOURS = {
    "read": "#8d6e63",
    "header": "#c9b037",
    "decode": "#0b6e8f",
    "resize": "#5fb3ce",
    "pillow": "#7b4fa3",
    "python": "#b04a8b",
    "staging": "#80cbc4",
    "device decode": "#2e7d32",
    "launch": "#c2410c",
    "kernel": "#8bc34a",
    "copy to the GPU": "#f59e0b",
    "copy from the GPU": "#b45309",
    "copy or fill on the GPU": "#d6c28a",
    "submit": "#455a64",
    "hand_over": "#90a4ae",
    "out_transform": "#ad1457",
    "__next__": "#cfd8dc",
    "wait": "#f3c6c6",
    "idle": "#ececec",
}
OTHER = "#000000"
RARE = {"launch", "device decode", "kernel", *(name for name in COLOURS if name.startswith("copy"))}
ROW_INCHES = 0.34
MEANING = {"wait": "wait for a batch", "idle": "idle: no work", "__next__": "rest of __next__"}


def stretch(made: list[Bar], batches: int) -> tuple[float, float]:
    """The time from the delivery of a batch in the middle to that of the `batches`-th one after it."""
    delivered = sorted(one.end for one in made if one.row == "consumer" and one.stage == "__next__")
    if not delivered:
        raise SystemExit("this trace has no batch of headrace's")
    first = max(0, (len(delivered) - batches - 1) // 2)
    last = min(len(delivered) - 1, first + batches)
    begin = delivered[first] if last > first else min(one.begin for one in made)
    return begin, delivered[last]


def draw(trace: Trace, out: Path, title: str, batches: int = 5) -> None:
    made = bars(trace)
    begin, end = stretch(made, batches)
    shown = [one for one in made if one.end > begin and one.begin < end]
    rows = rows_of(made)
    place = {row: y for y, row in enumerate(rows)}
    figure, axes = plt.subplots(figsize=(13, ROW_INCHES * len(rows) + 2.0), layout="constrained")
    for y in range(len(rows)):
        axes.axhspan(y - 0.5, y + 0.5, color="#f7f7f7" if y % 2 else "#ffffff", zorder=0)
    # By stage, since the zorder of a stage draws inner spans over outer ones.
    for stage in {one.stage for one in shown}:
        _draw_stage(axes, [one for one in shown if one.stage == stage], place, begin, end)
    for at in sorted(one.end for one in shown if one.row == "consumer" and one.stage == "__next__"):
        if begin <= at <= end:
            axes.axvline((at - begin) / 1e3, color="#555555", linewidth=0.8, linestyle=(0, (4, 3)), zorder=5)
    axes.set_xlim(0, (end - begin) / 1e3)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), rows, fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("milliseconds; a dashed line is a batch in the consumer's hands", fontsize=9)
    axes.set_title(title, loc="left", fontsize=11, weight="bold")
    stages = {one.stage for one in shown}
    known = [stage for stage in COLOURS if stage in stages] + sorted(stages - COLOURS.keys())
    legend = [Patch(color=COLOURS.get(stage, OTHER), label=MEANING.get(stage, stage)) for stage in known]
    columns = -(-len(legend) // -(-len(legend) // 9))  # the fewest rows, filled evenly
    figure.legend(handles=legend, loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
    figure.savefig(out, dpi=150, facecolor="white")
    plt.close(figure)


def _draw_stage(axes: Any, mine: list[Bar], place: dict[str, int], begin: float, end: float) -> None:
    stage = mine[0].stage
    around = stage == "__next__"
    for row in {one.row for one in mine}:
        pieces = [(max(one.begin, begin), min(one.end, end)) for one in mine if one.row == row]
        axes.broken_barh(
            [((a - begin) / 1e3, (b - a) / 1e3) for a, b in pieces],
            (place[row] - 0.4, 0.8),
            facecolors=COLOURS.get(stage, OTHER),
            edgecolors=COLOURS.get(stage, OTHER),
            linewidth=0.7 if stage in RARE else 0,  # otherwise short ones would be invisible
            zorder=1 if around else 2 if stage in ("wait", "idle") else 3,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.timeline.plot", description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--title", default="What each thread does")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or options.trace.with_name("timeline.png")
    draw(read_trace(options.trace), out, options.title, options.batches)


if __name__ == "__main__":
    main()
