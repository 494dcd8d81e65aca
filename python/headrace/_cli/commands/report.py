"""Writes the page about the loading of a dataset, or about a trace."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

from headrace._base.cores import usable_cores
from headrace._base.text import printable
from headrace._cli.commands.inputs import GivenError, check_writable, dataset_of, set_recipe
from headrace._reports.html.document import document
from headrace._reports.html.trace_facts import facts_of
from headrace.loader import DataLoader


def of_dataset(text: str, out: Path, recipe: str | None, workers: int | None, batch_size: int, batches: int) -> int:
    """Writes the page of a shuffled loader over a dataset. Returns the exit status: 2 if an argument is unusable."""
    try:
        check_writable(out)
        dataset = dataset_of(text)
        set_recipe(dataset, recipe)
        if not len(dataset):
            raise GivenError(f"{text} is empty")
    except GivenError as error:
        return _refused(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files
        threads = workers if workers is not None else usable_cores()
        loader: Any = DataLoader(dataset, batch_size, shuffle=True, num_workers=threads)
        if loader.native:  # the page lists broken files; the batches go on without them
            loader = DataLoader(
                dataset, batch_size, shuffle=True, num_workers=threads, on_error="skip", max_errors=None
            )
        loader.report(out, batches=batches)
    print(out)
    return 0


def of_trace(path: Path, out: Path) -> int:
    """Writes the page of a trace. Returns the exit status: 2 if it is none, or the page cannot be written."""
    try:
        check_writable(out)
        out.write_text(printable(document(facts_of(path))), encoding="utf-8")
    except OSError as error:
        return _refused(f"{error.filename}: {error.strerror}")
    except ValueError as error:
        return _refused(error)
    print(out)
    return 0


def _refused(error: ValueError | str) -> int:
    print(f"headrace report: {error}", file=sys.stderr)
    return 2
