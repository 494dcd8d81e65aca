"""``headrace bench``: times loaders on the user's dataset; table, JSON, Markdown and PNG."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TextIO

from headrace._cli import inputs


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    what = "time headrace and torch's DataLoader on your dataset, after a comparison"
    examples = ["bench train --workers 2 4 8 --json bench.json --png bench.png", "bench train --json - | jq .figures"]
    parser = inputs.add_command(commands, "bench", what, examples)
    parser.add_argument("dataset", metavar="DATASET", help=f"{inputs.DATASET}; or a folder of videos")
    workers = "numbers of workers, measured one by one; default: one a core"
    parser.add_argument("--workers", type=inputs.count, nargs="+", metavar="N", help=workers)
    parser.add_argument("--batch-size", type=inputs.count, metavar="N", help="default: 64; of videos 8")
    parser.add_argument("--rounds", type=inputs.count, default=5, metavar="N", help="default: 5")
    parser.add_argument("--seconds", type=inputs.seconds, default=2.0, metavar="S", help="of a measurement; default: 2")
    parser.add_argument(
        "--samples", type=inputs.count, metavar="N", help="samples of an epoch; default: what fits the time"
    )
    parser.add_argument("--recipe", metavar="CODE", help=inputs.RECIPE)
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write the figures of all rounds; {inputs.DASH}")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    parser.add_argument("--png", type=Path, metavar="FILE", help="write a plot (needs matplotlib)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measures, prints the table and writes the files.

    Returns:
        The exit status: 0 measured, 1 the batches differ or cannot be made, 2 an argument is unusable, 130 interrupted;
        what was measured before an interrupt is printed and written.
    """
    from headrace._cli.console.results import stdout_for_result

    with stdout_for_result(args) as out:
        return _run_bench(args, out)


def _run_bench(args: argparse.Namespace, out: TextIO) -> int:
    from headrace._base.messages import printable
    from headrace._cli.bench import plot, result_tables
    from headrace._cli.bench.comparison import compare_loaders
    from headrace._cli.bench.equality import DifferentError
    from headrace._cli.bench.sample_choice import UnusableError
    from headrace._cli.console.results import write_document

    try:
        for path in (args.markdown, args.png):
            inputs.check_writable(path)
        if args.png is not None and not plot.has_matplotlib():
            raise inputs.GivenError("--png needs matplotlib: pip install matplotlib")
        clips = inputs.clips_of(args.dataset)
        dataset = inputs.dataset_of(args.dataset) if clips is None else clips
        args.batch_size = args.batch_size or (64 if clips is None else 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's about single files, torch's about workers beyond the cores
            result = compare_loaders(dataset, args)
    except (UnusableError, DifferentError) as error:
        print(f"headrace bench: {error}", file=sys.stderr)
        return 1
    if not result.series:
        print("headrace bench: interrupted before the first round; nothing was measured", file=sys.stderr)
        return 130
    print(result_tables.format_terminal_table(result))
    write_document(result.as_dict(), args.json, out)
    if args.markdown is not None:
        args.markdown.write_text(printable(result_tables.format_markdown_table(result)), encoding="utf-8")
    if args.png is not None:
        plot.save_plot(result, args.png)
    return 130 if result.interrupted else 0
