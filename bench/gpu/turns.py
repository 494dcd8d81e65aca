"""Shared by the benchmarks of whole loaders: rounds of turns, options, and output."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.gpu import images
from bench.gpu.contenders import Work


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, minimum and maximum."""
    return {"median": statistics.median(values), "least": min(values), "greatest": max(values)}


def options_of(parser: argparse.ArgumentParser, *, seconds: float) -> argparse.Namespace:
    """Parses the options, with those that both benchmarks have."""
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--images", type=Path, metavar="DIR")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--files", type=int, default=images.WANTED)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most-seconds", type=float, default=150.0)
    parser.add_argument("--only", nargs="+", default=(), metavar="CONTENDER")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    return parser.parse_args()


def work_of(options: argparse.Namespace) -> Work:
    """The input of all contenders."""
    paths = images.files(options.images, options.files)
    return Work(paths, options.batch, len(os.sched_getaffinity(0)), options.device)


def take_turns(
    makers: Mapping[str, Callable[[], Any]],
    measure: Callable[[Any, dict[str, Any]], Any],
    options: argparse.Namespace,
    always: Sequence[str] = (),
) -> dict[str, Any]:
    """Runs rounds of all contenders, or of `options.only` and `always`, until they are done or the time is up.

    A contender is made at its first turn and kept. `measure` gets it and the round's figures so far.
    """
    deadline = time.monotonic() + options.most_seconds
    made: dict[str, Any] = {}
    failed: dict[str, str] = {}
    rounds: list[dict[str, Any]] = []
    for _ in range(options.rounds):
        rounds.append({})
        for name, make in makers.items():
            left_out = options.only and name not in (*options.only, *always)
            if name in failed or left_out or time.monotonic() > deadline:
                continue
            try:
                if name not in made:
                    made[name] = make()
                rounds[-1][name] = measure(made[name], rounds[-1])
            except Exception as error:  # not installed, no such decoder, a driver: every library raises its own type
                failed[name] = f"{type(error).__name__}: {error}"
    return {"rounds": rounds, "failed": failed}


def by_name(result: dict[str, Any]) -> dict[str, list[Any]]:
    """The figures of each contender, round by round."""
    names = dict.fromkeys(name for row in result["rounds"] for name in row)
    return {name: [row[name] for row in result["rounds"] if name in row] for name in names}


def finish_with(result: dict[str, Any], table: str, options: argparse.Namespace) -> None:
    """Writes and prints the result, and ends the process at once: libraries with their own threads may hang at exit."""
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table, flush=True)
    os._exit(0)
