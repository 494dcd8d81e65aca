"""Times whole loaders that end on the GPU: the same files, the same work, in turns; and nvJPEG alone beside them.

python -m bench.gpu.loaders [--images DIR] [--seconds S] [--rounds N] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from bench.gpu import decoding, images
from bench.gpu.contenders import CONTENDERS, Batches, Work, first_batch
from bench.gpu.place import Place
from bench.gpu.turns import by_name, finish_with, options_of, spread, take_turns, work_of
from headrace.engine import destination

BARE = "nvjpegDecodeBatched alone, on the engines"
BARE_STATES, BARE_BATCH = 2, 64  # as headrace calls it
WARM_UP_BATCHES = 4
Clock = Callable[[float], float]  # seconds to measure for -> images a second


def finish(work: Work) -> None:
    """Waits for the GPU."""
    if work.device == "cuda":
        torch.cuda.synchronize()


def stream_clock(batches: Batches, work: Work) -> Clock:
    """Images a second from batch to batch, the GPU's work included."""
    first_batch(batches, work)

    def measure(seconds: float) -> float:
        for _ in range(WARM_UP_BATCHES):
            next(batches)
        finish(work)
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            count += len(next(batches))
        finish(work)
        return count / (time.perf_counter() - begin)

    return measure


def bare_clock(work: Work) -> Clock:
    """The JPEG engines alone, called as headrace calls them: files in pinned memory, planes out, nothing else."""
    files = images.engine_files(dict.fromkeys(work.paths))
    colour = images.colour(files, max(len(files), 2 * BARE_STATES * BARE_BATCH))
    place, candidates = Place("cuda" if work.device == "cuda" else "cpu"), destination.nvjpeg_candidates()

    def measure(seconds: float) -> float:
        with decoding.opened("hardware", candidates) as library:
            how: dict[str, Any] = {"states": BARE_STATES, "batch": BARE_BATCH, "memory": "pinned", "rounds": 1}
            return decoding.rate(place, library, colour, seconds=seconds, **how)["median"]

    return measure


def run(work: Work, options: argparse.Namespace) -> dict[str, Any]:
    """All contenders in turns."""

    def begun(make: Callable[[Work], Batches]) -> Clock:
        return stream_clock(make(work), work)

    makers = {name: partial(begun, make) for name, make in CONTENDERS.items()} | {BARE: partial(bare_clock, work)}
    turns = take_turns(makers, lambda clock, _: clock(options.seconds), options)
    return {"files": len(work.paths), "batch": work.batch, "workers": work.workers} | turns


def table(result: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{result['workers']} threads, batches of {result['batch']}", "", "| loader | images/s |", "|---|---|"]
    for name, rates in by_name(result).items():
        rate = spread(rates)
        lines.append(f"| {name} | {rate['median']:,.0f} ({rate['least']:,.0f} to {rate['greatest']:,.0f}) |")
    lines += [f"| {name} | - ({why.splitlines()[0][:90]}) |" for name, why in result["failed"].items()]
    return "\n".join(lines)


def main() -> None:
    options = options_of(
        argparse.ArgumentParser(prog="python -m bench.gpu.loaders", description=__doc__.splitlines()[0]), seconds=2.5
    )
    result = run(work_of(options), options)
    finish_with(result, table(result), options)


if __name__ == "__main__":
    main()
