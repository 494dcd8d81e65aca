"""Times programs that open images themselves in torch's DataLoader and in headrace's, with only the import changed.

    python -m bench.code [--images DIR] [--rounds N] [--cores 1 2] [--only PROGRAM ...] [--first-epoch] [--out FILE]
    python -m bench.code.page    # fills the pages' figures from bench/results/code.json

Both loaders take turns, with as many persistent worker processes as cores. First their batches of an epoch must be
equal, random numbers included. The figure is the ratio of the images a second of whole epochs: the median and the range
over the rounds. Epochs are the third and later ones of the loaders, whose first two are for memory and equality: where
the rows of JPEGs begin is known by then. With `--first-epoch` each round is the first epoch of two new loaders, with
the start of their workers and nothing learned; then no file should be repeated (`--epoch 1`). Beside it stand the
memory of the workers and of the batches on their way, and the images that got native pixels.

A program with a native dataset beside its own has other random numbers in headrace's threads than in torch's workers:
its batches are compared with those of `loader.reference()`, which Pillow and torch make.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from bench.code import page, table
from bench.code.programs import PROGRAMS, Program


def begin(loader: Any) -> Any:
    """An iterator over an epoch, with generators seeded."""
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the generator that workers seed
    return iter(loader)


def seconds(loader: Any) -> float:
    """How long an epoch takes; each batch is dropped when the next one is requested."""
    start = time.perf_counter()
    for _ in begin(loader):
        pass
    return time.perf_counter() - start


def images(batches: list[Any]) -> int:
    """The number of samples in the batches."""
    first = (next(iter(batch.values())) if isinstance(batch, dict) else batch[0] for batch in batches)
    return sum(len(one[0] if isinstance(one, (list, tuple)) else one) for one in first)


def equal(a: Any, b: Any) -> bool:
    """Whether two batches are equal: their containers, and all values."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(equal, a.values(), b.values()))
    return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))


def shared_memory() -> int:
    """Bytes of shared memory in use on this machine."""
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Shmem:"))
    return int(line.split()[1]) << 10


def private_memory(loader: Any) -> int:
    """Bytes of a loader's workers that are not shared memory, as proportional set size."""
    total = 0
    for worker in loader._iterator._workers:
        lines = Path(f"/proc/{worker.pid}/smaps_rollup").read_text().splitlines()
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Pss_Anon:", "Pss_File:")))
    return total


def most_memory(loader: Any) -> int:
    """The most memory of a new loader's workers and of the batches on their way, seen at every fourth batch."""
    before, most = shared_memory(), 0
    for number, _ in enumerate(begin(loader)):
        if number % 4 == 3:
            most = max(most, private_memory(loader) + shared_memory() - before)
    return most


def measure(program: Program, paths: list[Path], cores: int, rounds: int, *, first: bool = False) -> dict[str, Any]:
    """The figures of one program on `cores` cores; `first`: of the first epochs of loaders."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = program.dataset(paths, Path(folder))
        options: dict[str, Any] = {"shuffle": program.shuffle} if hasattr(dataset, "__len__") else {}
        options |= {"num_workers": cores, "persistent_workers": True}
        data = program.native(dataset) if program.native else dataset
        collate_fn = None if program.native else program.collate_fn

        def make() -> tuple[Any, Any]:
            return (
                TorchDataLoader(dataset, program.batch, collate_fn=program.collate_fn, **options),
                headrace.DataLoader(data, program.batch, collate_fn=collate_fn, **options),
            )

        theirs, ours = make()
        memory = [None if one is ours and ours.native else most_memory(one) for one in (theirs, ours)]
        expected = list(begin(theirs))
        if program.native:
            ours.verify(len(ours))
        elif not equal(list(begin(ours)), expected):
            sys.exit("the batches differ")
        count, opened = images(expected), "all, in threads" if ours.native else str(ours.stats().images)
        del expected
        figures: dict[str, Any] = {"images": count, "route": ours.route, "opened": opened, "memory": memory}
        figures["epoch"] = "first" if first else "third and later"
        if not first:
            figures["seconds"] = [[seconds(loader) for loader in (theirs, ours)] for _ in range(rounds)]
        ours.close()
        if first:
            figures["seconds"] = [first_seconds(make) for _ in range(rounds)]
        return figures


def first_seconds(make: Callable[[], tuple[Any, Any]]) -> list[float]:
    """How long the first epochs of new loaders take."""
    theirs, ours = make()
    taken = [seconds(theirs), seconds(ours)]
    ours.close()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.code", description=__doc__.splitlines()[0])
    parser.add_argument("--first-epoch", action="store_true", help="times the first epochs of new loaders")
    table.add_options(parser, PROGRAMS)
    options = parser.parse_args()
    first = options.first_epoch
    warnings.filterwarnings("ignore", "torch's DataLoader delivers")
    print("first epochs" if first else "third and later epochs, with what the first ones have learned", end="\n\n")
    columns = "| program | cores | torch, images/s | headrace | ratio | MiB, torch / headrace | images opened |"
    table.run(options, PROGRAMS, functools.partial(measure, first=first), page.line, columns=columns, key="programs")


if __name__ == "__main__":
    main()
