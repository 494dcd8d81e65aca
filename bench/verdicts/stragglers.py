"""Slows one of several gloo ranks down, in one way after another, and compares the verdict on the job with the truth.

    python -m bench.verdicts.stragglers [--ranks 8] [--runs 20] [--steps 150] [--only quota sleep ...] [--out NAME.json]

All ranks run on this machine: each reads JPEG files with a native loader, takes a step that sleeps (as a device works
without the CPU), and reduces a tensor over all ranks. In each run another rank is slowed:

- quota: a control group stops it for most of each period;
- disk: each read of a file takes longer (a library ahead of the C library; this is no real disk);
- sleep: its own step takes longer;
- none: no rank is; a verdict that names one is wrong.

The verdict is the one that `headrace top` shows at the end of the run. It is right if it names the rank and the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

import headrace
from bench.machine import describe
from bench.verdicts.control_groups import limited
from bench.verdicts.material import files
from bench.verdicts.slow_reads import library, set_delay
from headrace._reports.metrics.process_figures import ProcessFigures

#: The reasons that are right, by cause.
RIGHT = {"quota": ("quota",), "disk": ("storage",), "sleep": ("step",), "none": ("",)}
_STEP_S, _SLEEP_S, _READ_S = 0.03, 0.03, 0.02  # the last one for each file
_QUOTA = 0.05  # cores
_BATCH = 4
_RECORDED = "100"  # collectives that torch keeps: a run is short, and of its default of 2,000 each reading takes long


class _Slowed:
    """A rank that is slowed down for the duration of a ``with`` block; `pause` is how much longer its step takes."""

    def __init__(self, cause: str) -> None:
        self._cause, self._ending = cause, ExitStack()
        self.pause = _SLEEP_S if cause == "sleep" else 0.0

    def __enter__(self) -> _Slowed:
        if self._cause == "disk":
            set_delay(_READ_S)
            self._ending.callback(set_delay, 0.0)
        elif self._cause == "quota":
            group = self._ending.enter_context(limited(_QUOTA))
            if group is None:
                raise RuntimeError("no control group can be made here")
            self._ending.callback((group.parent / "cgroup.procs").write_text, str(os.getpid()))
            (group / "cgroup.procs").write_text(str(os.getpid()))
        return self

    def __exit__(self, *error: object) -> None:
        self._ending.close()


def _train(loader: Any, steps: int, pause: float) -> float:
    """Runs the loop; returns seconds a step, without the first ones."""
    total, begin = torch.zeros(1000), 0.0
    for number, _ in enumerate(loader):
        time.sleep(_STEP_S + pause)
        dist.all_reduce(total)
        if number == 4:
            begin = time.perf_counter()
        if number == steps:
            break
    return (time.perf_counter() - begin) / (steps - 4)


def _run(rank: int, cause: str, slowed: int, steps: int, folder: Path) -> dict[str, Any]:
    """Makes one run on this rank; rank 0 returns what was said."""
    data = files(folder, 96, 64)
    loader = headrace.DataLoader(data, _BATCH, shuffle=True, num_workers=1, distributed=True, seed=1)
    dist.barrier()
    with headrace.publish(folder=folder / "published") as published:
        with _Slowed(cause if rank == slowed else "none") as slow:
            each_s = _train(loader, steps, slow.pause)
            # read before the slowed rank is free again
            dist.barrier()
        path = published.path
        job = ProcessFigures.of_text(path.read_text()).job if path is not None else None
        loader.close()
        dist.barrier()
    found = {"cause": cause, "rank": slowed if cause != "none" else -1, "ms_a_step": round(1e3 * each_s, 1)}
    if job is None:
        return {**found, "named": -1, "reason": "", "certainty": "no verdict", "cost": 0.0, "text": ""}
    said = {"named": job.straggler, "reason": job.reason, "certainty": job.certainty, "cost": round(job.cost, 3)}
    return {**found, **said, "text": str(job)}


def _is_right(run: dict[str, Any]) -> bool:
    return run["named"] == run["rank"] and run["reason"] in RIGHT[run["cause"]]


def _rank(rank: int, options: argparse.Namespace, top: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{top}/rendezvous", rank=rank, world_size=options.ranks)
    found: list[dict[str, Any]] = []
    try:
        for number in range(options.runs):
            for cause in options.only:
                folder = Path(top) / f"{cause}-{number}"
                folder.mkdir(exist_ok=True)
                slowed = (3 * number + 1) % options.ranks
                run = _run(rank, cause, slowed, options.steps, folder)
                if rank == 0:
                    found.append(run)
                    print(f"{cause} on rank {slowed}: {'right' if _is_right(run) else 'WRONG'}", file=sys.stderr)
                    print(run["text"], f"{run['ms_a_step']} ms a step\n", sep="\n", file=sys.stderr, flush=True)
                    _write(found, options)
    except BaseException:
        traceback.print_exc()
        raise
    dist.destroy_process_group()


def _write(found: list[dict[str, Any]], options: argparse.Namespace) -> None:
    right, all_runs = Counter(one["cause"] for one in found if _is_right(one)), Counter(one["cause"] for one in found)
    shares = {cause: f"{right[cause]} of {count}" for cause, count in all_runs.items()}
    print(shares, file=sys.stderr, flush=True)
    if options.out:
        about = f"{options.ranks} gloo ranks on one machine, {options.steps} steps a run; right: rank and reason"
        text = json.dumps({"machine": describe(), "about": about, "right": shares, "found": found}, indent=1)
        options.out.write_text(text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--only", nargs="*", default=["quota", "disk", "sleep", "none"], choices=list(RIGHT))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ |= {"LD_PRELOAD": str(library()), "PYTHONWARNINGS": "ignore", "TORCH_FR_BUFFER_SIZE": _RECORDED}
    with tempfile.TemporaryDirectory() as top:
        spawn(_rank, (options, top), options.ranks)


if __name__ == "__main__":
    main()
