"""Measures the rows of a benchmark on each number of cores, and prints them as a table."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from bench.datasets import PHOTOS
from bench.machine import describe, pick_cpus

Measure = Callable[[Any, list[Path], int, int], dict[str, Any]]  # of a row, paths, cores and rounds
Shown = Callable[[str, int, dict[str, Any]], str]  # of a row's name, cores, and what was measured


def add_options(parser: argparse.ArgumentParser, rows: Mapping[str, Any]) -> None:
    """Adds the options of a benchmark with these rows."""
    parser.add_argument("--images", type=Path, default=PHOTOS, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epoch", type=int, default=512, help="least images of an epoch: the files are repeated")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=rows, default=list(rows), metavar="ROW")
    parser.add_argument("--out", type=Path, help="also writes the figures here, as JSON")


def run(
    options: argparse.Namespace,
    rows: Mapping[str, Any],
    measure: Measure,
    shown: Shown,
    *,
    columns: str,
    key: str,
) -> None:
    """Measures each row with the process pinned to its cores, and writes the table.

    Args:
        options: those of `add_options`.
        shown: returns one line of the table.
        columns: the table's first line.
        key: of the rows in the JSON file.
    """
    torch.set_num_threads(1)
    paths = sorted(path for path in options.images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    paths *= -(-options.epoch // len(paths))
    results: dict[str, Any] = {"machine": describe(), key: {}}
    print(columns)
    print("|---" * (columns.count("|") - 1) + "|")
    for cores in options.cores:
        os.sched_setaffinity(0, pick_cpus(cores))
        for name in options.only:
            figures = results[key][f"{name}, {cores}"] = measure(rows[name], paths, cores, options.rounds)
            print(shown(name, cores, figures), flush=True)
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    if options.out:
        options.out.write_text(json.dumps(results, indent=1))
