"""``headrace report``: writes the page about the loading of a dataset, or about a trace."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from headrace._cli import inputs


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("report", help="write one HTML page about the loading of a dataset, or about a trace")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("dataset", metavar="DATASET", nargs="?", help=inputs.DATASET)
    what.add_argument("--profile", type=Path, metavar="JSON", help="a trace that headrace.profile exported")
    parser.add_argument("-o", "--out", type=Path, default="report.html", metavar="FILE", help="default: report.html")
    parser.add_argument("--batches", type=inputs.count, default=100, metavar="N", help="at most; default: 100")
    parser.add_argument("--batch-size", type=inputs.count, default=64, metavar="N", help="default: 64")
    parser.add_argument("--workers", type=inputs.count, metavar="N", help="native threads; default: one a core")
    parser.add_argument("--recipe", metavar="CODE", help=inputs.RECIPE)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the page. Returns the exit status: 2 if an argument is unusable, or the page cannot be written."""
    from headrace.loader import DataLoader

    inputs.check_writable(args.out)
    if args.profile is not None:
        _write_of_trace(args.profile, args.out)
        return 0
    dataset = inputs.dataset_of(args.dataset)
    inputs.set_recipe(dataset, args.recipe)
    if not len(dataset):
        raise inputs.GivenError(f"{args.dataset} is empty")
    options = {"batch_size": args.batch_size, "shuffle": True, "num_workers": inputs.workers_of(args)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files
        loader = DataLoader(dataset, **options)
        if loader.native:  # the page lists broken files; the batches go on without them
            loader = DataLoader(dataset, **options, on_error="skip", max_errors=None)
        loader.report(args.out, batches=args.batches)
    print(args.out)
    return 0


def _write_of_trace(path: Path, out: Path) -> None:
    from headrace._base.messages import printable
    from headrace._reports.html.document import document
    from headrace._reports.html.trace_facts import facts_of

    try:
        out.write_text(printable(document(facts_of(path))), encoding="utf-8")
    except OSError as error:
        raise inputs.GivenError(f"{error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise inputs.GivenError(str(error)) from error
    print(out)
