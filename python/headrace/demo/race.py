"""Measures headrace beside torch's DataLoader: same files, transforms and cores, in turns, once they are equal."""

from __future__ import annotations

import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import PIL
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, ImageFolder
from headrace.base.cores import usable_cores
from headrace.demo import recipes
from headrace.demo.equality import same_batches

BATCH = 64
_NAMES = ("torch", "headrace")


class NoOpponentError(RuntimeError):
    """torch's DataLoader cannot run with worker processes here."""


@contextmanager
def limited_to(cpus: set[int]) -> Iterator[None]:
    """Keeps this thread, and the threads and processes that it starts, on these CPUs."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def loaders(root: Path, workers: int) -> dict[str, Any]:
    """Both over one dataset, with the same arguments; torch calls its transforms in processes, headrace lowers them."""
    dataset = ImageFolder(root, recipes.train())
    arguments = {"batch_size": BATCH, "shuffle": True, "num_workers": workers, "persistent_workers": True}
    return {"torch": TorchDataLoader(dataset, **arguments), "headrace": DataLoader(dataset, **arguments)}  # type: ignore[arg-type]


def race(root: Path, rounds: int, seconds: float) -> dict[tuple[str, int], list[float]]:
    """Images a second of every round, by contender and number of cores (1, and 2 where there are two).

    Args:
        rounds: every contender runs once a round, in turn.
        seconds: at least so long, in whole epochs.

    Raises:
        AssertionError: the batches of the two differ. NoOpponentError: torch's loader cannot run its workers here.
    """
    allowed = sorted(os.sched_getaffinity(0))
    counts = (1, 2) if usable_cores() > 1 else (1,)
    evaluation = ImageFolder(root, recipes.evaluation())
    batches = same_batches(TorchDataLoader(evaluation, BATCH), DataLoader(evaluation, BATCH, num_workers=counts[-1]))
    print(f"   Checked first: {batches} batches of evaluation are torch.equal; training batches were compared above.")
    contenders = {}
    for count in counts:  # torch's processes are forked before there are any threads of headrace
        with limited_to(set(allowed[:count])):
            contenders[count] = loaders(root, count)
            _first_epoch(contenders[count]["torch"])
    speeds: dict[tuple[str, int], list[float]] = {(name, count): [] for count in counts for name in _NAMES}
    for number in range(rounds + 1):
        for count in counts:
            for name in _NAMES:
                with limited_to(set(allowed[:count])):
                    speed = _measure(contenders[count][name], seconds if number > 0 else 0.0)
                if number > 0:  # round 0 starts threads and warms caches
                    speeds[name, count].append(speed)
    for pair in contenders.values():
        pair["headrace"].close()
    return speeds


def _drain(loader: Any) -> int:
    return sum(len(labels) for _, labels in loader)


def _first_epoch(loader: Any) -> None:
    """Raises NoOpponentError where torch's workers cannot start, or cannot hand their batches over."""
    try:
        multiprocessing.Lock()  # a semaphore in /dev/shm: torch's iterator would fail half made
        _drain(loader)
    except (OSError, RuntimeError) as error:  # RuntimeError: torch's, of workers that died of a full /dev/shm
        why = (str(error).splitlines() or [type(error).__name__])[-1]  # the last line of a worker's traceback
        raise NoOpponentError(
            f"torch's DataLoader cannot run worker processes here ({why}); they need a /dev/shm with room for several "
            "batches of 40 MB"
        ) from error


def _measure(loader: Any, seconds: float) -> float:
    """Images a second over whole epochs."""
    images, begin = 0, time.perf_counter()
    while True:
        images += _drain(loader)
        elapsed = time.perf_counter() - begin
        if elapsed >= seconds:
            return images / elapsed


def table(speeds: dict[tuple[str, int], list[float]]) -> str:
    """Medians, and the smallest and largest of the rounds."""
    counts = sorted({count for _, count in speeds})
    rounds = len(speeds["torch", counts[0]])
    heads = "".join(f"{f'{count} core' + 's' * (count > 1):>26}" for count in counts)
    lines = [f"   {'images a second':<28}{heads}"]
    for name, label in (("torch", "torch's DataLoader + Pillow"), ("headrace", "headrace")):
        cells = []
        for count in counts:
            values = speeds[name, count]
            cells.append(f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})")
        lines.append(f"   {label:<28}" + "".join(f"{cell:>26}" for cell in cells))
    ratios = (statistics.median(speeds["headrace", n]) / statistics.median(speeds["torch", n]) for n in counts)
    lines.append(f"   {'times as fast':<28}" + "".join(f"{f'{ratio:.2f}':>26}" for ratio in ratios))
    runs = f"{rounds} rounds in turns" if rounds > 1 else "one round"
    lines.append(f"   Median of {runs} (smallest to largest), batch {BATCH}, num_workers = cores.")
    lines.append(f"   {cpu_name()}; torch {torch.__version__}, Pillow {PIL.__version__}.")
    waiting, cores = os.getloadavg()[0], os.cpu_count() or 1
    if waiting > cores + 1:
        lines.append(f"   This machine is busy (load {waiting:.1f} on {cores} cores): the figures wander.")
    return "\n".join(lines)


def cpu_name() -> str:
    """The processor, as the system calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
