"""Compares num_workers="auto" with fixed numbers of threads.

    python -m bench.auto [--only folder ...] [--rounds 9] [--seconds 1.5] [--auto-seconds 30] [--cores N] [--out X]

Each case is a process of its own. The loader with "auto" runs alone for `--auto-seconds` and chooses; then it and
loaders with fixed numbers take turns of `--seconds` within each round, in a random order, so other programs on the
machine disturb all alike. "auto" goes on tuning in its turns. A ratio is taken within each round; its median over the
rounds is that to the fixed number with the greatest median. The best of several noisy figures is a little too great.

Each case runs in a control group of its own where one can be made: in the group of all programs, a process gets more of
a busy machine the more threads it has, which no quiet machine shows. Cases named "..., quota" have a quota of 1.0 cores
there, and are left out without a group. `--cores N`: each case is bound to the first N cores. The bar: 0.95 of the best
fixed value, chosen within 30 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from bench.auto.cases import CASES
from bench.auto.turns import one
from bench.machine import describe
from bench.verdicts.control_groups import limited, throttled
from bench.verdicts.slow_reads import library


def run(name: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """Measures a case in a process of its own; None where control groups cannot be made."""
    numbers = [str(one) for one in (options.rounds, options.seconds, options.auto_seconds)]
    command = [sys.executable, "-m", "bench.auto", "--one", name, *numbers]
    quota = CASES[name].quota
    with limited(quota) as group:
        if quota and group is None:
            return None

        def join() -> None:
            if group is not None:
                (group / "cgroup.procs").write_text(str(os.getpid()))
            if options.cores is not None:
                os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])

        environment = {**os.environ, "LD_PRELOAD": str(library())}
        done = subprocess.run(command, env=environment, preexec_fn=join, stdout=subprocess.PIPE, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        stopped = throttled(group) if quota and group is not None else None
        return found | {"load": os.getloadavg()[0], "throttled": stopped, "own_group": group is not None}


def compared(found: dict[str, Any]) -> dict[str, Any]:
    """Returns the figures of a case with the best fixed number, and the ratios to it."""
    speeds = dict(found["speeds"])
    auto = speeds.pop("auto")
    best = max(speeds, key=lambda number: median(speeds[number]))
    ratios = sorted(mine / its for mine, its in zip(auto, speeds[best], strict=True))
    of_best = {
        number: median(its / most for its, most in zip(all_, speeds[best], strict=True))
        for number, all_ in speeds.items()
    }
    return found | {"best": best, "auto_of_best": median(ratios), "ratios": ratios, "of_best": of_best}


def told(found: dict[str, Any]) -> str:
    """Returns the lines about one case."""
    share = ", ".join(f"{number}: {one:.2f}" for number, one in found["of_best"].items())
    ratios = found["ratios"]
    at, choice = found["chosen"][-1]
    own = "" if found["own_group"] else ", no control group of its own"
    lines = [
        f"{found['case']}: threads {share} of the best, {found['best']}",
        f"  auto {found['auto_of_best']:.2f} of the best ({ratios[0]:.2f} to {ratios[-1]:.2f}, {len(ratios)} rounds); "
        f"{choice}, chosen after {at:.1f} s; load {found['load']:.1f}{own}",
        f"  {found['tuned']}",
    ]
    if found["throttled"] is not None:
        lines.append("  the quota stopped it in {1} of {0} periods".format(*found["throttled"]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a turn")
    parser.add_argument("--auto-seconds", type=float, default=30.0, help="in which the loader chooses alone")
    parser.add_argument("--cores", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, rounds, seconds, auto_seconds = options.one
        print(json.dumps(one(name, int(rounds), float(seconds), float(auto_seconds))))
        return
    figures = []
    try:
        for name in options.only:
            found = run(name, options)
            if found is None:
                print(f"{name}: not run: control groups cannot be made here", flush=True)
                continue
            figures.append(compared(found))
            print(told(figures[-1]), flush=True)
    finally:  # what there is, also after an interrupt
        if options.out is not None:
            options.out.write_text(json.dumps({"machine": describe(), "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
