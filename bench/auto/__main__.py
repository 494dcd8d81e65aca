"""Compares num_workers="auto" with fixed numbers of threads: how fast it is at last, and how soon.

    python -m bench.auto [--only folder ...] [--rounds 3] [--seconds 5] [--auto-seconds 40] [--cgroup DIR] [--out X]

Every run is a process of its own; fixed values and "auto" take turns. `--cgroup DIR`: each run joins this control group
first, which you have made with a quota, such as cpu.max = "100000 100000" of version 2. `--cores N`: each run is bound
to the first N cores. The bar: 95% of the best fixed value, reached within 30 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.auto.cases import CASES
from bench.machine import describe
from bench.verdicts.slow_reads import library, set_delay

BATCH = 64
_WARM_UP_S = 0.5
_BAR = 0.95


def one(name: str, workers: str, seconds: float) -> dict[str, Any]:
    """Runs a loader; returns (seconds since the beginning, samples since then) at each batch, and what it chose."""
    import torch

    import headrace

    torch.set_num_threads(1)
    make, delay, _ = CASES[name]
    with tempfile.TemporaryDirectory() as where:
        dataset = make(Path(where))
        set_delay(delay)
        number: Any = workers if workers == "auto" else int(workers)
        loader: Any = headrace.DataLoader(dataset, BATCH, shuffle=True, num_workers=number, seed=1)
        marks: list[tuple[float, int]] = []
        samples, begin = 0, time.perf_counter()
        while not marks or marks[-1][0] < seconds:
            for _ in loader:
                samples += BATCH
                marks.append((time.perf_counter() - begin, samples))
                if marks[-1][0] >= seconds:
                    break
        told = loader.stats().tuned
        loader.close()
        set_delay(0.0)
    return {"marks": marks, "tuned": None if told is None else str(told)}


def speed(marks: list[tuple[float, int]], begin: float, end: float) -> float:
    """Returns samples a second between two times."""
    inside = [one for one in marks if begin <= one[0] <= end]
    if len(inside) < 2:
        return 0.0
    return (inside[-1][1] - inside[0][1]) / max(1e-9, inside[-1][0] - inside[0][0])


def reached(marks: list[tuple[float, int]], bar: float) -> float | None:
    """Returns the seconds after which the speed of 3 s first comes up to the bar; None: never."""
    step, length = 0.5, 3.0
    begin = 0.0
    while begin + length <= marks[-1][0]:
        if speed(marks, begin, begin + length) >= bar:
            return begin
        begin += step
    return None


def run(name: str, workers: str, seconds: float, cgroup: Path | None, cores: int | None) -> dict[str, Any]:
    """Calls `one` in a process of its own."""
    command = [sys.executable, "-m", "bench.auto", "--one", name, workers, str(seconds)]

    def join() -> None:
        if cgroup is not None:
            (cgroup / "cgroup.procs").write_text(str(os.getpid()))
        if cores is not None:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])

    environment = {**os.environ, "LD_PRELOAD": str(library())}
    done = subprocess.run(command, env=environment, preexec_fn=join, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """Returns the figures of one case."""
    fixed: dict[int, list[float]] = {number: [] for number in CASES[name][2]}
    autos = []
    for _ in range(args.rounds):
        for number in fixed:
            found = run(name, str(number), args.seconds, args.cgroup, args.cores)
            fixed[number].append(speed(found["marks"], _WARM_UP_S, args.seconds))
        autos.append(run(name, "auto", args.auto_seconds, args.cgroup, args.cores))
    best = max(fixed, key=lambda number: median(fixed[number]))
    bar = _BAR * median(fixed[best])
    end = args.auto_seconds
    speeds = [speed(one["marks"], end - args.seconds, end) for one in autos]
    return {
        "case": name,
        "fixed": fixed,
        "best": best,
        "best_speed": median(fixed[best]),
        "auto_speeds": speeds,
        "auto_of_best": median(speeds) / median(fixed[best]),
        "reached_s": [reached(one["marks"], bar) for one in autos],
        "tuned": [one["tuned"] for one in autos],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a run with a fixed number")
    parser.add_argument("--auto-seconds", type=float, default=40.0)
    parser.add_argument("--cgroup", type=Path)
    parser.add_argument("--cores", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one[0], args.one[1], float(args.one[2]))))
        return
    figures = []
    for name in args.only:
        found = compare(name, args)
        figures.append(found)
        speeds = ", ".join(f"{number}: {median(all_):,.0f}" for number, all_ in found["fixed"].items())
        print(f"{name}: samples/s by threads {speeds}; best {found['best']}")
        times = ", ".join("never" if one is None else f"{one:.1f} s" for one in found["reached_s"])
        print(f"  auto {median(found['auto_speeds']):,.0f}: {found['auto_of_best']:.2f} of the best; 95% after {times}")
        print(f"  {found['tuned'][-1]}", flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps({"machine": describe(), "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
