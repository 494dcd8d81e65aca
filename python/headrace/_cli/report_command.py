"""``headrace report``: writes the page about the loading of a dataset, or about a trace."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._cli import inputs
from headrace._cli.console import results

if TYPE_CHECKING:
    from headrace._reports.html.report_data import Facts

_LEAST_BATCHES = 16  # of an epoch, for a verdict


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    about = "write one HTML page about the loading of a dataset, or about a trace"
    examples = ["report train -o report.html", "report --profile trace.json.gz"]
    parser = inputs.add_command(commands, "report", about, examples)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("dataset", metavar="DATASET", nargs="?", help=inputs.DATASET)
    what.add_argument("--profile", type=Path, metavar="JSON", help="a trace that headrace.profile exported")
    parser.add_argument("-o", "--out", type=Path, default="report.html", metavar="FILE", help="default: report.html")
    parser.add_argument("--batches", type=inputs.count, default=100, metavar="N", help="at most; default: 100")
    parser.add_argument("--batch-size", type=inputs.count, metavar="N", help="default: 64, or a 16th of the samples")
    parser.add_argument("--workers", type=inputs.count, metavar="N", help="native threads; default: one a core")
    parser.add_argument("--recipe", metavar="CODE", help=inputs.RECIPE)
    results.add_json_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the page. Returns the exit status: 2 if an argument is unusable, or the page cannot be written."""
    from headrace._reports.html.document import document

    with results.stdout_for_result(args) as out:
        inputs.check_writable(args.out)
        facts = _facts_of_dataset(args) if args.profile is None else _facts_of_trace(args.profile)
        try:
            args.out.write_text(document(facts), encoding="utf-8")
        except OSError as error:
            raise inputs.GivenError(f"{error.filename or args.out}: {error.strerror}") from error
        print(args.out)
        results.write_document(_json_document(facts, args.out), args.json, out)
    return 0


def _facts_of_dataset(args: argparse.Namespace) -> Facts:
    from headrace._reports.html.loader_facts import facts_of
    from headrace.loader import DataLoader

    dataset = inputs.dataset_of(args.dataset)
    inputs.set_recipe(dataset, args.recipe)
    if not len(dataset):
        raise inputs.GivenError(f"{args.dataset} is empty")
    batch_size = args.batch_size or max(1, min(64, len(dataset) // _LEAST_BATCHES))
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "shuffle": True,
        "num_workers": inputs.workers_of(args),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files
        loader = DataLoader(dataset, **options)
        if loader.native:  # the page lists broken files; the batches go on without them
            loader = DataLoader(dataset, **options, on_error="skip", max_errors=None)
        return facts_of(loader, args.batches)


def _facts_of_trace(path: Path) -> Facts:
    from headrace._reports.html.trace_facts import facts_of

    try:
        return facts_of(path)
    except OSError as error:
        raise inputs.GivenError(f"{error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise inputs.GivenError(str(error)) from error


def _json_document(facts: Facts, page: Path) -> dict[str, object]:
    progress = facts.progress
    return {
        "page": str(page),
        "title": facts.title,
        "verdict": facts.verdict,
        "unit": progress.unit,
        "delivered": sum(progress.counts),
        "per_second": progress.per_second,
        "batches": len(progress.times_s),
        "seconds": progress.times_s[-1] if progress.times_s else 0.0,
        "failed": results.broken_files_as_json(facts.failed),
        "notes": facts.notes,
        "machine": facts.machine,
    }
