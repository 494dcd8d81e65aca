"""Finds the number of threads and the prefetch for a dataset on this machine; prints a table and what to write."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace._base.exceptions import name_of, words_of
from headrace._cli.commands.inputs import GivenError, check_writable, dataset_of, set_recipe
from headrace._cli.tune.measurement import Point, Sweep
from headrace._loading.autotune.budget import AutoWorkers, Budget, budget_of
from headrace._loading.autotune.tuner import Choice
from headrace._reports.loader import machine

_NOTE = (
    'These are the figures of a loader alone. A training step uses cores, too: num_workers="auto" finds the numbers '
    "while it runs."
)


@dataclass(frozen=True)
class Plan:
    """What is measured; see the command's options. None: those of this process."""

    seconds: float
    cores: float | None
    memory: int | None
    batch_size: int
    recipe: str | None


def run(text: str, plan: Plan, path: Path | None) -> int:
    """Measures, prints the table and writes the file.

    Returns:
        The exit status: 0 measured, 1 the batches cannot be made, 2 an argument is unusable, 130 interrupted; what was
        measured before an interrupt is printed and written.
    """
    try:
        check_writable(path)
        dataset = dataset_of(text)
        recipe = set_recipe(dataset, plan.recipe)
        if not len(dataset):
            raise GivenError(f"{text} is empty")
    except GivenError as error:
        print(f"headrace tune: {error}", file=sys.stderr)
        return 2
    budget = budget_of(AutoWorkers(plan.cores, plan.memory))
    sweep = Sweep(dataset, min(plan.batch_size, len(dataset)), budget, plan.seconds, _shown)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about single files, torch's about workers beyond the cores
            sweep.run()
    except Exception as error:  # of a sample, of the dataset's own code or of its transforms
        why = (words_of(error).strip().splitlines() or [name_of(error)])[0]
        print(
            f"headrace tune: a batch cannot be made: {why}; headrace doctor DATASET lists such files", file=sys.stderr
        )
        return 1
    finally:
        _shown(None)
    if not sweep.points:
        print("headrace tune: interrupted before the first setting was measured", file=sys.stderr)
        return 130
    mib = f"{budget.memory / 2**20:,.0f} MiB for batches"
    print(f"{text}: {len(dataset)} samples, transforms: {recipe}; {budget.why}, {mib}")
    for line in table(sweep.points, sweep.chosen):
        print(line)
    threads, depth = sweep.chosen.choice
    options = f"batch_size={plan.batch_size}, num_workers={threads}, prefetch_factor={depth}"
    print(f"\nDataLoader(dataset, {options})\n\n{_NOTE}")
    if (busy := machine.busy()) is not None:
        print(busy)
    if path is not None:
        path.write_text(json.dumps(as_dict(text, plan, budget, sweep), indent=1) + "\n")
    return 130 if sweep.interrupted else 0


def table(points: dict[Choice, Point], chosen: Point) -> list[str]:
    """Returns the lines of the table, the fastest setting first."""
    lines = [f"{'num_workers':>11}  {'prefetch_factor':>15}  {'samples/s':>10}  {'of the best':>11}  bottleneck"]
    fastest = max(one.speed for one in points.values())
    for one in sorted(points.values(), key=lambda point: -point.speed):
        share = one.speed / fastest if fastest else 1.0
        mark = "  <- take this" if one is chosen else ""
        numbers = f"{one.choice.threads:>11}  {one.choice.depth:>15}  {one.speed:>10,.1f}  {share:>11.2f}"
        lines.append(f"{numbers}  {one.bottleneck}{mark}")
    return lines


def as_dict(text: str, plan: Plan, budget: Budget, sweep: Sweep) -> dict[str, Any]:
    """Returns all figures, for JSON."""
    chosen = sweep.chosen.choice
    return {
        "dataset": text,
        "batch_size": plan.batch_size,
        "cores": budget.cores,
        "memory": budget.memory,
        "machine": machine.describe(),
        "interrupted": sweep.interrupted,
        "num_workers": chosen.threads,
        "prefetch_factor": chosen.depth,
        "figures": [
            {
                "num_workers": one.choice.threads,
                "prefetch_factor": one.choice.depth,
                "samples_per_s": one.speeds,
                "median": one.speed,
                "bottleneck": one.bottleneck,
            }
            for one in sweep.points.values()
        ],
    }


def _shown(choice: Choice | None) -> None:
    """Shows what is measured now, on a terminal; None: nothing any more."""
    if sys.stderr.isatty():
        text = "" if choice is None else f"measuring {choice}"
        print(f"\r{text:<60}\r{text}", end="", file=sys.stderr, flush=True)
