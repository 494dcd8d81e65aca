"""headrace bench, tune, report and top."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from headrace._cli.arguments.values import DATASET, RECIPE, Commands, cores, count, seconds, size


def add(commands: Commands[Any]) -> None:
    """Adds the commands."""
    race = commands.add_parser("bench", help="time headrace and torch's DataLoader on your dataset, after a comparison")
    race.add_argument("dataset", metavar="DATASET", help=DATASET)
    workers = "numbers of workers, measured one by one; default: one a core"
    race.add_argument("--workers", type=count, nargs="+", metavar="N", help=workers)
    race.add_argument("--batch-size", type=count, default=64, metavar="N", help="default: 64")
    race.add_argument("--rounds", type=count, default=5, metavar="N", help="default: 5")
    race.add_argument("--seconds", type=seconds, default=2.0, metavar="S", help="of a measurement; default: 2")
    race.add_argument("--samples", type=count, metavar="N", help="samples of an epoch; default: what fits the time")
    race.add_argument("--recipe", metavar="CODE", help=RECIPE)
    race.add_argument("--json", type=Path, metavar="FILE", help="write the figures of all rounds")
    race.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    race.add_argument("--png", type=Path, metavar="FILE", help="write a plot (needs matplotlib)")
    race.set_defaults(run=_bench)

    tuned = commands.add_parser("tune", help="find num_workers and prefetch_factor for your dataset on this machine")
    tuned.add_argument("dataset", metavar="DATASET", help=DATASET)
    tuned.add_argument("--seconds", type=seconds, default=30.0, metavar="S", help="in all, about; default: 30")
    tuned.add_argument("--cores", type=cores, metavar="C", help="to use at most; default: those of this process")
    tuned.add_argument("--memory", type=size, metavar="BYTES", help="of batches; default: an eighth of what is free")
    tuned.add_argument("--batch-size", type=count, default=64, metavar="N", help="default: 64")
    tuned.add_argument("--recipe", metavar="CODE", help=RECIPE)
    tuned.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    tuned.set_defaults(run=_tune)

    page = commands.add_parser("report", help="write one HTML page about the loading of a dataset, or about a trace")
    what = page.add_mutually_exclusive_group(required=True)
    what.add_argument("dataset", metavar="DATASET", nargs="?", help=DATASET)
    what.add_argument("--profile", type=Path, metavar="JSON", help="a trace that headrace.profile exported")
    page.add_argument("-o", "--out", type=Path, default="report.html", metavar="FILE", help="default: report.html")
    page.add_argument("--batches", type=count, default=100, metavar="N", help="at most; default: 100")
    page.add_argument("--batch-size", type=count, default=64, metavar="N", help="default: 64")
    page.add_argument("--workers", type=count, metavar="N", help="native threads; default: one a core")
    page.add_argument("--recipe", metavar="CODE", help=RECIPE)
    page.set_defaults(run=_report)

    live = commands.add_parser("top", help="show what the loaders of running processes do, and what limits them")
    number = "processes that publish, or that started such ones; default: all of this user"
    live.add_argument("pids", type=count, nargs="*", metavar="PID", help=number)
    live.add_argument("--every", type=seconds, default=1.0, metavar="S", help="between two looks; default: 1")
    live.add_argument("--once", action="store_true", help="print one look, and end")
    live.add_argument("--json", action="store_true", help="print all figures of one look as JSON, and end")
    live.add_argument("--folder", type=Path, metavar="DIR", help="the folder that headrace.publish() was given")
    live.set_defaults(run=_top)


def _bench(args: argparse.Namespace) -> int:
    from headrace._cli.commands import bench

    files = bench.Files(args.json, args.markdown, args.png)
    plan = bench.Plan(args.workers, args.batch_size, args.rounds, args.seconds, args.samples, args.recipe)
    return bench.run(args.dataset, plan, files)


def _tune(args: argparse.Namespace) -> int:
    from headrace._cli.commands import tune

    return tune.run(
        args.dataset, tune.Plan(args.seconds, args.cores, args.memory, args.batch_size, args.recipe), args.json
    )


def _report(args: argparse.Namespace) -> int:
    from headrace._cli.commands import report

    if args.profile is not None:
        return report.of_trace(args.profile, args.out)
    return report.of_dataset(args.dataset, args.out, args.recipe, args.workers, args.batch_size, args.batches)


def _top(args: argparse.Namespace) -> int:
    from headrace._cli.commands import top

    return top.run(args.pids, args.folder, args.every, args.once, args.json)
