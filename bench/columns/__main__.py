"""Times batches of rows of a mapped array: torch's DataLoader and headrace.Columns, beside a plain copy of the memory.

    python -m bench.columns [--rows N] [--batch N] [--rounds N]

The array is (rows, 224, 224, 13) float32 in an .npy file, in the page cache. All loaders read the same random order and
must deliver equal batches before anything is timed. They take turns in each round; the figures are medians over the
rounds and their range. A batch is dropped before the next one is taken, as in a training loop.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchDataLoader

import headrace

SHAPE = (224, 224, 13)


class Textures(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """What one writes without headrace: views of the mapped rows, which the loader's collate_fn copies."""

    def __init__(self, path: Path, labels: np.ndarray[Any, Any]) -> None:
        self.array = np.load(path, mmap_mode="c")  # copy on write: torch warns of read-only arrays
        self.labels = torch.from_numpy(labels)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"texture": torch.from_numpy(self.array[index]), "label": self.labels[index]}


def epoch(loader: Iterable[dict[str, torch.Tensor]]) -> float:
    """Bytes a second of an epoch's textures."""
    size, begin = 0, time.perf_counter()
    for batch in loader:
        size += batch["texture"].nbytes
        del batch
    return size / (time.perf_counter() - begin)


def copy_rate(batch: int) -> Callable[[], float]:
    """Measures bytes a second of numpy.copyto between two batches in memory, in one thread."""
    source, target = np.ones((batch, *SHAPE), np.float32), np.empty((batch, *SHAPE), np.float32)

    def measure() -> float:
        begin = time.perf_counter()
        for _ in range(8):
            np.copyto(target, source)
        return 8 * source.nbytes / (time.perf_counter() - begin)

    return measure


def write(path: Path, rows: int) -> None:
    """Writes random rows; they are in the page cache then."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, *SHAPE))
    random = np.random.default_rng(0)
    for row in array:
        row[...] = random.random(SHAPE, dtype=np.float32)
    array.flush()


def loaders(path: Path, labels: np.ndarray[Any, Any], batch: int) -> dict[str, Iterable[dict[str, torch.Tensor]]]:
    """The contenders by name, with the same order."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0)).tolist()
    made: dict[str, Iterable[dict[str, torch.Tensor]]] = {}
    for workers in (0, 2):
        made[f"torch, num_workers={workers}"] = TorchDataLoader(
            Textures(path, labels), batch, sampler=order, num_workers=workers, persistent_workers=workers > 0
        )
    columns = headrace.Columns({"texture": np.load(path, mmap_mode="r"), "label": labels})
    for workers in (0, 2):
        made[f"headrace, num_workers={workers}"] = headrace.DataLoader(
            columns, batch, sampler=order, num_workers=workers, persistent_workers=workers > 0
        )
    return made


def check(contenders: dict[str, Iterable[dict[str, torch.Tensor]]]) -> None:
    """Exits unless all loaders deliver the same batches. This also starts their workers and maps the file's pages."""
    for batches in zip(*contenders.values(), strict=True):
        for one in batches[1:]:
            if one.keys() != batches[0].keys() or not all(torch.equal(one[name], batches[0][name]) for name in one):
                sys.exit("the batches differ")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.columns", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "textures.npy"
        write(path, options.rows)
        contenders = loaders(path, np.arange(options.rows), options.batch)
        check(contenders)
        measures: dict[str, Callable[[], float]] = {"numpy.copyto, one thread": copy_rate(options.batch)}
        measures |= {name: partial(epoch, loader) for name, loader in contenders.items()}
        rates: dict[str, list[float]] = {name: [] for name in measures}
        for _ in range(options.rounds):
            for name, measure in measures.items():
                rates[name].append(measure())
        torchs = [max(both) for both in zip(*(rates[f"torch, num_workers={n}"] for n in (0, 2)), strict=True)]
        copies = rates["numpy.copyto, one thread"]
        for name, figures in rates.items():
            faster = [one / other for one, other in zip(figures, torchs, strict=True)]
            copied = statistics.median(one / other for one, other in zip(figures, copies, strict=True))
            print(
                f"{name}: {statistics.median(figures) / 1e9:.2f} GB/s ({min(figures) / 1e9:.2f} to "
                f"{max(figures) / 1e9:.2f}), {statistics.median(faster):.1f} times torch's best "
                f"({min(faster):.1f} to {max(faster):.1f}), {copied:.2f} of the copy"
            )


if __name__ == "__main__":
    main()
