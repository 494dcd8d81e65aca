"""``headrace tune``: finds the number of threads and the prefetch for a dataset; prints a table and what to write."""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from headrace._cli import inputs

if TYPE_CHECKING:
    from headrace._cli.tune.measurement import Point, Sweep
    from headrace._loading.autotune.budget import Budget
    from headrace._loading.autotune.tuner import Choice

_NOTE = (
    'These are the figures of a loader alone. A training step uses cores, too: num_workers="auto" finds the numbers '
    "while it runs."
)


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    what = "find num_workers and prefetch_factor for your dataset on this machine"
    examples = ["tune train --batch-size 256", "tune train --seconds 60 --recipe eval --json tune.json"]
    parser = inputs.add_command(commands, "tune", what, examples)
    parser.add_argument("dataset", metavar="DATASET", help=inputs.DATASET)
    parser.add_argument("--seconds", type=inputs.seconds, default=30.0, metavar="S", help="in all, about; default: 30")
    parser.add_argument(
        "--cores", type=inputs.cores, metavar="C", help="to use at most; default: those of this process"
    )
    parser.add_argument(
        "--memory", type=inputs.size, metavar="BYTES", help="of batches; default: an eighth of what is free"
    )
    parser.add_argument("--batch-size", type=inputs.count, default=64, metavar="N", help="default: 64")
    parser.add_argument("--recipe", metavar="CODE", help=inputs.RECIPE)
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write all figures; {inputs.DASH}")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measures, prints the table and writes the file.

    Returns:
        The exit status: 0 measured, 1 the batches cannot be made, 2 an argument is unusable, 130 interrupted; what was
        measured before an interrupt is printed and written.
    """
    from headrace._cli.console.results import stdout_for_result

    with stdout_for_result(args) as out:
        return _tune(args, out)


def _tune(args: argparse.Namespace, out: TextIO) -> int:
    from headrace._base.safe_exceptions import message_of, type_name_of
    from headrace._cli.console.results import write_document
    from headrace._cli.tune.measurement import Sweep
    from headrace._loading.autotune.budget import AutoWorkers, budget_of
    from headrace._reports.loader import machine

    dataset = inputs.dataset_of(args.dataset)
    recipe = inputs.set_recipe(dataset, args.recipe)
    if not len(dataset):
        raise inputs.GivenError(f"{args.dataset} is empty")
    budget = budget_of(AutoWorkers(args.cores, args.memory))
    show, busy = _progress(), machine.warning_if_busy()  # before the sweep adds to the load
    sweep = Sweep(dataset, min(args.batch_size, len(dataset)), budget, args.seconds, show)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about single files, torch's about workers beyond the cores
            sweep.run()
    except Exception as error:  # of a sample, of the dataset's own code or of its transforms
        why = (message_of(error).strip().splitlines() or [type_name_of(error)])[0]
        print(
            f"headrace tune: a batch cannot be made: {why}; headrace doctor DATASET --bad - lists such files",
            file=sys.stderr,
        )
        return 1
    finally:
        show(None)
    if not sweep.points:
        print("headrace tune: interrupted before the first setting was measured", file=sys.stderr)
        return 130
    mib = f"{budget.memory / 2**20:,.0f} MiB for batches"
    print(f"{args.dataset}: {len(dataset)} samples, transforms: {recipe}; {budget.why}, {mib}")
    chosen = None if busy else sweep.chosen
    for line in table(sweep.points, chosen):
        print(line)
    print(f"\n{_advice(args, sweep, chosen, busy)}\n\n{textwrap.fill(_NOTE, 80, break_on_hyphens=False)}")
    write_document(as_dict(args, budget, sweep, chosen, busy), args.json, out)
    return 130 if sweep.interrupted else 0


def _advice(args: argparse.Namespace, sweep: Sweep, chosen: Point | None, busy: str | None) -> str:
    """Returns the line to paste, or why there is none."""
    if chosen is not None:
        threads, depth = chosen.choice
        return f"DataLoader(dataset, batch_size={args.batch_size}, num_workers={threads}, prefetch_factor={depth})"
    rivals = sweep.race.rivals()
    if busy is not None:
        why = busy
    elif sweep.is_disturbed:
        made = sum(len(one.speeds) for one in sweep.points.values())
        why = f"Other programs used the cores in {sweep.disturbed} of {made} measurements."
    elif rivals and sweep.race.may_gain(rivals[0]) < math.inf:
        gain = sweep.race.may_gain(rivals[0]) - 1
        why = (
            f"{rivals[0]} may be {gain:.0%} faster than {sweep.race.target}: the figures of the rounds differ too much."
        )
    else:
        why = "There were too few rounds."
    then = 'No setting is recommended: write num_workers="auto", or measure again, longer (--seconds).'
    return "\n".join(textwrap.fill(one, 80, break_on_hyphens=False) for one in (why, then))


def table(points: dict[Choice, Point], chosen: Point | None) -> list[str]:
    """Returns the lines of the table, the fastest setting first."""
    heads = f"{'num_workers':>11}  {'prefetch_factor':>15}  {'samples/s':>10}  {'spread':>6}"
    lines = [f"{heads}  {'of the best':>11}  bottleneck"]
    fastest = max(one.speed for one in points.values())
    for one in sorted(points.values(), key=lambda point: -point.speed):
        share = one.speed / fastest if fastest else 1.0
        mark = "  <- take this" if one is chosen else ""
        spread = "" if one.spread is None else f"\u00b1{one.spread:.0%}"
        numbers = f"{one.choice.threads:>11}  {one.choice.depth:>15}  {one.speed:>10,.1f}  {spread:>6}  {share:>11.2f}"
        lines.append(f"{numbers}  {one.bottleneck}{mark}")
    return lines


def as_dict(
    args: argparse.Namespace, budget: Budget, sweep: Sweep, chosen: Point | None, busy: str | None
) -> dict[str, object]:
    """Returns all figures, for JSON."""
    from headrace._reports.loader import machine

    return {
        "dataset": args.dataset,
        "batch_size": args.batch_size,
        "cores": budget.cores,
        "memory": budget.memory,
        "machine": machine.describe_machine(),
        "busy": busy is not None,
        "interrupted": sweep.interrupted,
        "num_workers": None if chosen is None else chosen.choice.threads,
        "prefetch_factor": None if chosen is None else chosen.choice.depth,
        "figures": [
            {
                "num_workers": one.choice.threads,
                "prefetch_factor": one.choice.depth,
                "samples_per_s": one.speeds,
                "median": one.speed,
                "spread": one.spread,
                "bottleneck": one.bottleneck,
            }
            for one in sweep.points.values()
        ],
    }


def _progress() -> Callable[[Choice | None], None]:
    """Returns what shows the setting that is measured now; None: nothing any more."""
    from headrace._cli.console.progress import SpacedLines, on_terminal

    lines = SpacedLines()

    def show(choice: Choice | None) -> None:
        text = "" if choice is None else f"measuring {choice}"
        if on_terminal():
            print(f"\r{text:<60}\r{text}", end="", file=sys.stderr, flush=True)
        elif text:
            lines.say(f"tune: {text}")

    return show
