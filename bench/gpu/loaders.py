"""Times whole loaders that deliver to the GPU, in turns on the same files and the same work; and nvJPEG alone.

python -m bench.gpu.loaders [--images DIR] [--seconds S] [--rounds N] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.gpu import images
from bench.gpu.contenders import CONTENDERS, Batches, Work, first_batch
from bench.gpu.questions import decoding
from bench.gpu.questions.place import Place
from bench.gpu.turns import by_name, finish_with, options_of, spread, take_turns, work_of
from headrace._engine import destination

BARE = "nvjpegDecodeBatched alone, on the engines"
BARE_STATES, BARE_BATCH = 2, 64  # the values with which headrace calls it
WARM_UP_BATCHES = 4
PREFETCH_FACTOR = 2  # torch's: batches that each of its workers holds, made before the clock begins
Clock = Callable[[float], dict[str, float]]  # seconds of the measurement -> images per second, cores


def finish(work: Work) -> None:
    """Waits for the GPU."""
    if work.device == "cuda":
        torch.cuda.synchronize()


def cpu_seconds() -> float:
    """CPU time of this process and its live children, which getrusage() counts only after they have ended."""
    ours, ticks = os.getpid(), 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()  # from the state on
            if ours in (int(path.parent.name), int(fields[1])):
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def stream_clock(batches: Batches, work: Work, first: dict[str, float]) -> Clock:
    """Images per second, with the GPU's work included, and the CPU cores that were busy meanwhile.

    `first` gets the seconds until the first batch, and the GPU memory that was taken by then.
    """
    used, begin = memory_used(work), time.perf_counter()
    first_batch(batches, work)
    finish(work)
    first |= {"first_batch_s": time.perf_counter() - begin, "gpu_mib": (memory_used(work) - used) / 2**20}

    def measure(seconds: float) -> dict[str, float]:
        for _ in range(max(WARM_UP_BATCHES, PREFETCH_FACTOR * work.workers)):
            next(batches)
        finish(work)
        count, cpu, begin = 0, cpu_seconds(), time.perf_counter()
        while time.perf_counter() - begin < seconds:
            count += len(next(batches))
        finish(work)
        took = time.perf_counter() - begin
        return {"images_per_s": count / took, "cores": (cpu_seconds() - cpu) / took}

    return measure


def memory_used(work: Work) -> int:
    """Bytes of GPU memory that all processes together use."""
    if work.device != "cuda":
        return 0
    free, total = torch.cuda.mem_get_info()
    return total - free


def bare_clock(work: Work) -> Clock:
    """The JPEG engines alone, called as by headrace: from files in pinned memory to planes."""
    files = images.engine_files(dict.fromkeys(work.paths))
    colour = images.colour(files, max(len(files), 2 * BARE_STATES * BARE_BATCH))
    place, candidates = Place("cuda" if work.device == "cuda" else "cpu"), destination.nvjpeg_candidates()

    def measure(seconds: float) -> dict[str, float]:
        with decoding.opened("hardware", candidates) as library:
            how: dict[str, Any] = {"states": BARE_STATES, "batch": BARE_BATCH, "memory": "pinned", "rounds": 1}
            return {"images_per_s": decoding.rate(place, library, colour, seconds=seconds, **how)["median"]}

    return measure


def run(
    work: Work, options: argparse.Namespace, contenders: Mapping[str, Callable[[Work], Batches]], *, bare: bool = True
) -> dict[str, Any]:
    """Measures all contenders in turns; with `bare`, the JPEG engines alone, too."""

    first: dict[str, dict[str, float]] = {}

    def begun(name: str, make: Callable[[Work], Batches]) -> Clock:
        return stream_clock(make(work), work, first.setdefault(name, {}))

    makers: dict[str, Callable[[], Any]] = {name: partial(begun, name, make) for name, make in contenders.items()}
    if bare:
        makers[BARE] = partial(bare_clock, work)
    turns = take_turns(makers, lambda clock, _: clock(options.seconds), options)
    return {"files": len(work.paths), "batch": work.batch, "workers": work.workers, "first": first} | turns


def table(result: dict[str, Any]) -> str:
    """The figures as a markdown table."""
    lines = [
        f"{result['workers']} threads, batches of {result['batch']}",
        "",
        "| loader | images/s | cores busy | first batch | GPU memory |",
    ]
    lines.append("|---|---|---|---|---|")
    for name, rows in by_name(result).items():
        rate, first = spread([row["images_per_s"] for row in rows]), result["first"].get(name, {})
        cells = [f"{rate['median']:,.0f} ({rate['least']:,.0f} to {rate['greatest']:,.0f})"]
        cells.append(f"{spread([row['cores'] for row in rows])['median']:.1f}" if "cores" in rows[0] else "")
        cells += [f"{first['first_batch_s']:.1f} s", f"{first['gpu_mib']:,.0f} MiB"] if first else ["", ""]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [f"| {name} | - ({why.splitlines()[0][:90]}) | | | |" for name, why in result["failed"].items()]
    return "\n".join(lines)


def main() -> None:
    options = options_of(
        argparse.ArgumentParser(prog="python -m bench.gpu.loaders", description=__doc__.splitlines()[0]), seconds=2.5
    )
    result = run(work_of(options), options, CONTENDERS)
    finish_with(result, table(result), options)


if __name__ == "__main__":
    main()
