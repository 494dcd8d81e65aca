"""A comparison as a picture: bars of the medians with their range."""

from __future__ import annotations

import textwrap
from pathlib import Path

from headrace._cli.bench.loaders import BASELINE, OURS
from headrace._cli.bench.result import Result

_COLOURS = {OURS: "#0b6e8f", BASELINE: "#4d4d4d"}
_OTHERS = "#b5bcc2"


def has_matplotlib() -> bool:
    """Whether matplotlib, which draws the picture, is installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def save_plot(result: Result, path: Path) -> None:
    """Draws the medians of all loaders, with their smallest and largest speed, and saves a PNG."""
    from matplotlib.figure import Figure

    rows = result.sort_series()
    figure = Figure(figsize=(8, 1.9 + 0.42 * len(rows)), layout="constrained")
    axes = figure.subplots()
    most = max(one.most for _, _, one in rows)
    labels = []
    for y, (name, count, one) in enumerate(rows):
        axes.barh(y, one.median, color=_COLOURS.get(name, _OTHERS), height=0.7)
        whisker = [[one.median - one.least], [one.most - one.median]]
        axes.errorbar(one.median, y, xerr=whisker, color="black", capsize=2.5, linewidth=1)
        ratio = result.ratio(name, count)
        times = "" if ratio is None or name == BASELINE else f"   {ratio:.2f}x"
        axes.text(one.most + 0.01 * most, y, f" {one.median:,.0f}{times}", va="center", fontsize=9)
        labels.append(f"{name}, {count} worker{'s' * (count > 1)}")
    axes.set_yticks(range(len(rows)), labels, fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1.25 * most)
    axes.set_xlabel("samples per second (x: times torch's DataLoader)", fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    about = f"{result.dataset}: {result.timed:,} samples, {result.recipe}, batches of {result.batch_size}"
    axes.set_title("\n".join(textwrap.wrap(about, 90)), loc="left", fontsize=10)
    below = (
        f"{result.machine['cpu']}, {result.machine['usable_cores']} cores; torch {result.machine['torch']}, Pillow "
        f"{result.machine['Pillow']}; median and range of {result.rounds} rounds"
    )
    figure.supxlabel("\n".join(textwrap.wrap(below, 110)), fontsize=7.5, color="#555555")
    figure.savefig(path, dpi=150, facecolor="white", format="png")
