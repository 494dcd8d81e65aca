"""Prints how long the first batch of a list of paths takes where processes make it, and the memory of each: torch's
DataLoader and headrace's, for each way to start workers, in turn. Their batches are compared first."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

from bench.processes import run_for_line
from headrace import DataLoader, SharedList

METHODS = ("spawn", "forkserver", "fork")
CONTENDERS = ("torch", "headrace", "torch-shared", "headrace-shared")  # shared: the paths in a headrace.SharedList
BATCH = 64
COMPARED = 4  # batches


class Paths(Dataset[torch.Tensor]):
    """Paths of a list, of some 60 bytes; its samples depend on their characters."""

    def __init__(self, files: int, *, shared: bool) -> None:
        paths = (f"/data/imagenet/train/n{i % 1000:08}/n{i % 1000:08}_{i:08}.JPEG" for i in range(files))
        self.paths: Any = SharedList(paths) if shared else list(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index, zlib.crc32(self.paths[index].encode())])


class AllPaths(Paths):
    """Its only samples are sums over all paths, which a worker reads for each."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index, sum(map(len, self.paths))])


def memory_of(process: int) -> tuple[float, float]:
    """Megabytes of a process: its proportional share (PSS), and what no other one has."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    found = {name: int(size) / 1000 for name, size, *_ in map(str.split, lines)}
    return found["Pss:"], found["Private_Clean:"] + found["Private_Dirty:"]


def cpu_s_of(process: int) -> float:
    """Seconds that a process has computed so far."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def measure(contender: str, method: str, files: int, workers: int, *, reads_all: bool) -> dict[str, Any]:
    """Returns the figures of one loader: seconds to the first batch of two epochs, those of CPU time that this process
    and the workers need for the second, and megabytes of the workers."""
    warnings.simplefilter("ignore")
    kind = AllPaths if reads_all else Paths
    dataset = kind(files, shared=contender.endswith("-shared"))
    make: Any = DataLoader if contender.startswith("headrace") else TorchDataLoader
    options = {"batch_size": 1 if reads_all else BATCH, "num_workers": workers, "multiprocessing_context": method}
    seconds, batches, memory, computed = [], [], [(0.0, 0.0)], 0.0
    loader = make(dataset, **options)
    for _ in range(1 if reads_all else 2):
        begin, computed = time.perf_counter(), -time.process_time()
        iterator = iter(loader)
        batches.append(next(iterator))
        seconds.append(time.perf_counter() - begin)
        batches += itertools.islice(iterator, COMPARED * workers - 1)  # all workers are there
        computed += time.process_time() + sum(cpu_s_of(worker.pid) for worker in iterator._workers)
        memory = [memory_of(worker.pid) for worker in iterator._workers]
        del iterator
    return {
        "first_s": seconds[0],
        "second_s": seconds[-1],
        "cpu_s": computed,
        "pss_mb": max(one[0] for one in memory),
        "private_mb": max(one[1] for one in memory),
        "batches": zlib.crc32(b"".join(one.numpy().tobytes() for one in batches)),
    }


def main() -> None:
    """Measures each contender in processes of its own, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, nargs="+", default=[100_000, 10_000_000])
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--contenders", nargs="+", default=CONTENDERS[:2], choices=CONTENDERS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reads-all", action="store_true", help="each worker reads all paths, as in an epoch")
    parser.add_argument("--one", action="store_true", help="measures here, and prints a line of JSON")
    options = parser.parse_args()
    if options.one:
        case = options.contenders[0], options.methods[0], options.paths[0], options.workers
        print(json.dumps(measure(*case, reads_all=options.reads_all)))
        return
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {options.workers} workers")
    for files in options.paths:
        for method in options.methods:
            _compare(options, method, files)


def _compare(options: argparse.Namespace, method: str, files: int) -> None:
    found: dict[str, list[dict[str, Any]]] = {one: [] for one in options.contenders}
    for _ in range(options.rounds):
        for one in options.contenders:
            command = [sys.executable, "-m", "bench.worker_start", "--one", "--contenders", one, "--methods", method]
            command += ["--paths", str(files), "--workers", str(options.workers)]
            command += ["--reads-all"] if options.reads_all else []
            found[one].append(run_for_line(command, 600))
            if "failed" in found[one][-1]:
                raise SystemExit(f"{one}, {method}, {files} paths: {found[one][-1]['failed']}")
    digests = {each["batches"] for runs in found.values() for each in runs}
    if len(digests) != 1:
        raise SystemExit(f"{method}, {files} paths: the batches differ")
    for one, runs in found.items():
        middle = {name: statistics.median(each[name] for each in runs) for name in runs[0]}
        least, most = (function(each["first_s"] for each in runs) for function in (min, max))
        print(
            f"{files:>10,} paths, {method:10} {one:15} "
            f"first batch {middle['first_s']:6.2f} s ({least:.2f} to {most:.2f}), "
            f"of the next epoch {middle['second_s']:6.2f} s and {middle['cpu_s']:6.2f} s of CPU time; "
            f"a worker has {middle['pss_mb']:5.0f} MB (PSS), {middle['private_mb']:5.0f} MB its own"
        )


if __name__ == "__main__":
    main()
