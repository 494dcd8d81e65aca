"""Draws a run as horizontal bars: medians with their range, and the ceiling of decoding as a line.

    python -m bench.plot bench/results/NAME.json [--datasets imagenet_dev] [--recipes train] [--out NAME.png]

run.py draws the whole run; this command draws a part of it.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from bench.contenders import BASELINE, CEILING, CONTENDERS
from bench.report import RECIPES, conditions

OURS, REFERENCE, PEERS, LIMIT = "#0b6e8f", "#4d4d4d", "#b5bcc2", "#c2410c"
BAR_INCHES = 0.36


def _colour(name: str) -> str:
    return OURS if name.startswith("headrace") else REFERENCE if name == BASELINE else PEERS


def _panel(axes: Any, names: Sequence[str], rows: Mapping[str, Any], absent: Mapping[str, str]) -> None:
    """Bars from top to bottom in the order of `names`; `absent` says why a name has no row."""
    greatest = max((row["images_per_s"]["max"] for row in rows.values()), default=1.0)
    for y, name in enumerate(names):
        row = rows.get(name)
        if row is None:
            why = absent.get(name, "has no such recipe")
            axes.text(0.01 * greatest, y, why, va="center", color="#808080", style="italic", fontsize=8)
            continue
        rate, ratio = row["images_per_s"], row["to_torch"]
        whisker = [[rate["median"] - rate["min"]], [rate["max"] - rate["median"]]]
        axes.barh(y, rate["median"], color=_colour(name), height=0.72)
        axes.errorbar(rate["median"], y, xerr=whisker, color="black", capsize=2.5, linewidth=1)
        text = f" {rate['median']:,.0f}" + (f"   {ratio['median']:.2f}x" if ratio else "")
        axes.text(rate["max"] + 0.01 * greatest, y, text, va="center", fontsize=8.5,
                  weight="bold" if name == "headrace" else "normal",
                  bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1})  # fmt: skip
    if CEILING in rows:
        limit = rows[CEILING]["images_per_s"]
        axes.axvspan(limit["min"], limit["max"], color=LIMIT, alpha=0.12, linewidth=0, zorder=0)
        axes.axvline(limit["median"], color=LIMIT, linestyle="--", linewidth=1.2)
        # Above the bars, so that it covers none.
        axes.annotate(f"ceiling, decoding alone: {limit['median']:,.0f}", (limit["median"], 1), (-4, 3),
                      xycoords=("data", "axes fraction"), textcoords="offset points",
                      ha="right", va="bottom", color=LIMIT, fontsize=8.5)  # fmt: skip
    axes.set_xlim(0, 1.24 * greatest)
    labels = [textwrap.fill(CONTENDERS[name].label, 30) for name in names]
    axes.set_yticks(range(len(names)), labels, fontsize=8.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)


def _absent(result: Mapping[str, Any], where: tuple[str, str, int]) -> dict[str, str]:
    absent = dict.fromkeys(result["missing"], "not installed")
    for figure in result["figures"]:
        if "images" not in figure and (figure["dataset"], figure["recipe"], figure["cores"]) == where:
            absent[figure["name"]] = "failed"
    return absent


def draw(
    result: Mapping[str, Any],
    out: Path,
    only: Sequence[str] | None = None,
    recipes: Sequence[str] | None = None,
) -> None:
    """One row of panels for each data set and recipe, one column for each number of cores."""
    options = result["options"]
    sets = [d for d in result["datasets"] if only is None or d["name"] in only]
    wanted = [recipe for recipe in options["recipes"] if recipes is None or recipe in recipes]
    lines = [(dataset, recipe) for dataset in sets for recipe in wanted]
    names = [name for name in options["contenders"] if name != CEILING]
    medians = {row["name"]: row["images_per_s"]["median"] for row in reversed(result["summary"])}
    names.sort(key=lambda name: -medians.get(name, 0))  # all panels have the order of the first
    height = BAR_INCHES * len(names) + 0.95
    figure, grid = plt.subplots(
        len(lines), len(options["cores"]), figsize=(6.2 * len(options["cores"]), height * len(lines) + 1.0),
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for (dataset, recipe), panels in zip(lines, grid, strict=True):
        for cores, axes in zip(options["cores"], panels, strict=True):
            where = (dataset["name"], recipe, cores)
            here = [r for r in result["summary"] if (r["dataset"], r["recipe"], r["cores"]) == where]
            _panel(axes, names, {row["name"]: row for row in here}, _absent(result, where))
            title = f"{dataset['name']}, {recipe}, {cores} core{'s' * (cores > 1)}"
            axes.set_title(title, loc="left", fontsize=10, weight="bold", pad=18)
    for axes in grid[-1]:
        axes.set_xlabel("images per second (x: times torch)", fontsize=9)
    steps = "; ".join(f"{recipe}: {RECIPES[recipe]}" for recipe in wanted)
    files = "; ".join(f"{d['name']}: {d['about']}, batches of {d['batch_size']}" for d in sets)
    width = 62 * len(options["cores"]) + 30
    small = "\n".join(textwrap.fill(text, width) for text in (steps, files, conditions(result)))
    title = "From JPEG files to float32 batches for PyTorch, on the CPU"
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    figure.text(0.01, -0.01, small, ha="left", va="top", fontsize=7.5, color="#555555")
    figure.savefig(out, dpi=160, bbox_inches="tight", facecolor="white")
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.plot", description=__doc__.splitlines()[0])
    parser.add_argument("result", type=Path)
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--recipes", nargs="+")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    result = json.loads(args.result.read_text())
    draw(result, args.out or args.result.with_suffix(".png"), args.datasets, args.recipes)


if __name__ == "__main__":
    main()
