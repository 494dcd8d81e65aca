"""Measures how much of a slow disk's speed loaders use: the files are cold, and a control group limits the device.

    python -m bench.storage.limited [--images DIR] [--folder DIR] [--files N] [--cores N] [--rounds N] [--out FILE]

Needs root, and control groups of version 1 with `blkio` or of version 2 with `io`. The limits are bytes a second, as of
a disk, or requests a second, as of storage across a network. What the disk gives is measured in turns with the loaders:
32 threads that only read the same files in the same order. The figures are shares of that: the median and the range
over the rounds. The loaders decode RandomResizedCrop(224) to float32, in as many threads or processes as cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

import headrace
from bench.contenders._common import import_torchvision, torchvision_transform
from bench.machine import describe, pick_cpus
from bench.storage.cold import BATCH, add_options, evict, laid_out

READERS = 32
LIMITS = {"50 MB/s": ("bps", 50_000_000), "150 MB/s": ("bps", 150_000_000), "1,000 requests/s": ("iops", 1000)}


class Own(Dataset[Any]):
    """A dataset of one's own: torch's workers open its files."""

    def __init__(self, paths: list[Path], transform: Any) -> None:
        self.paths, self.transform = paths, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        return self.transform(Image.open(self.paths[index]).convert("RGB"))


@contextmanager
def limited(folder: Path, kind: str, value: int) -> Iterator[None]:
    """Limits reads of this process, and of those that it starts, from the folder's device."""
    info = folder.stat().st_dev
    device = f"{os.major(info)}:{os.minor(info)}"
    first = Path("/sys/fs/cgroup/blkio")
    if first.is_dir():
        group, file, line = first / "headrace-bench", f"blkio.throttle.read_{kind}_device", f"{device} {value}"
    else:
        group, file, line = Path("/sys/fs/cgroup/headrace-bench"), "io.max", f"{device} r{kind}={value}"
    try:
        group.mkdir(exist_ok=True)
        (group / file).write_text(line)
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        sys.exit(f"this machine lets no control group limit {device}: {error}")
    try:
        yield
    finally:
        (group.parent / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def read_all(paths: list[Path]) -> float:
    """Files a second of threads that only read."""
    order = random.Random(0).sample(paths, len(paths))
    begin = time.perf_counter()
    with ThreadPoolExecutor(READERS) as pool:
        for _ in pool.map(Path.read_bytes, order):
            pass
    return len(paths) / (time.perf_counter() - begin)


def epoch_of(make: Callable[[], Any], files: int) -> float:
    """Images a second of an epoch of a new loader, with the start of its workers."""
    loader = make()
    begin = time.perf_counter()
    count = sum(len(batch) if isinstance(batch, torch.Tensor) else len(batch[0]) for batch in loader)
    assert count == files
    return count / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.storage.limited", description=__doc__.splitlines()[0])
    add_options(parser, files=1600, rounds=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.sched_setaffinity(0, pick_cpus(options.cores))
    import_torchvision()
    transform = torchvision_transform("train")
    shares: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        paths = laid_out(options.images, Path(name), options.files, "files")
        common: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "num_workers": options.cores}
        makers: dict[str, Callable[[], Any]] = {
            "headrace": lambda: headrace.DataLoader(headrace.ImageFiles(paths, None, transform), **common),
            "headrace, own Dataset": lambda: headrace.DataLoader(Own(paths, transform), **common),
            "torch, own Dataset": lambda: TorchDataLoader(Own(paths, transform), **common),
        }
        for limit, (kind, value) in LIMITS.items():
            found = shares.setdefault(limit, {title: [] for title in makers})
            for _ in range(options.rounds):
                evict(paths)
                with limited(Path(name), kind, value):
                    disk = read_all(paths)
                for title, make in makers.items():
                    evict(paths)
                    with limited(Path(name), kind, value):
                        found[title].append(epoch_of(make, options.files) / disk)
            for title, of_disk in found.items():
                spread = f"{statistics.median(of_disk):.2f} ({min(of_disk):.2f} to {max(of_disk):.2f})"
                print(f"{limit}, {title}: {spread} of {disk:,.0f} files/s", flush=True)
    if options.out:
        options.out.write_text(json.dumps({"machine": describe(), "files": options.files, "shares": shares}, indent=1))


if __name__ == "__main__":
    main()
