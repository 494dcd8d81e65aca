"""Trains under faults for hours and compares every sample with the oracle's: nothing may be lost, wrong, or hang.

    python -m bench.soak --minutes 360 --out bench/results/soak.json [--seed S] [--folder DIR]

A trainer draws epochs: datasets, transforms, error policies, numbers of workers and batch sizes; ends in the middle,
interrupts, forks and lacks of descriptors; and faults of the file system, of threads and of memory, which a library in
LD_PRELOAD injects. After each of these it resumes from the loader's state, as a checkpoint holds it. The figures are
added to the file every minute; the run may be stopped at any time (Ctrl-C, SIGTERM, kill -9), paused (SIGSTOP), and
started again. The exit status is 1 if something was lost, wrong, unexpected, or hung.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.soak import ledger
from bench.soak.watcher import Watcher

_BAD = ("lost", "wrong", "unexpected")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, help="of what is drawn (default: the time)")
    parser.add_argument("--out", type=Path, default=Path("build/soak.json"), help="file of figures to add to")
    parser.add_argument("--folder", type=Path, help="for images and logs (default: one in the temporary folder)")
    parser.add_argument("--images", type=int, default=1024, help="in each dataset (default: 1024)")
    parser.add_argument("--epochs", type=int, default=8, help="different epochs of each recipe (default: 8)")
    parser.add_argument("--nice", type=int, default=0, help="niceness of the trainer (default: 0)")
    parser.add_argument("--cgroup", type=Path, help="a control group, with a limit of memory, that it joins first")
    parser.add_argument("--merge", type=Path, help="adds the runs of this file to --out, and does nothing else")
    options = parser.parse_args()
    if options.merge:
        for run in ledger.read(options.merge):
            ledger.add(options.out, run)
        return
    if options.cgroup:
        (options.cgroup / "cgroup.procs").write_text(str(os.getpid()))
    seed = int(time.time()) if options.seed is None else options.seed
    folder = options.folder or Path(tempfile.gettempdir()) / f"headrace-soak-{os.getuid()}"
    watcher = Watcher(folder, options.out, options.images, options.epochs, seed, options.nice)
    signal.signal(signal.SIGTERM, watcher.end)
    signal.signal(signal.SIGINT, watcher.end)
    record = watcher.run(60 * options.minutes)
    print(json.dumps({name: value for name, value in record.items() if name != "memory"}, indent=1))
    sys.exit(bool(record["hangs"] or record["crashes"] or any(record["counters"][name] for name in _BAD)))


if __name__ == "__main__":
    main()
