"""Times headrace and torch's DataLoader in turn on the same files, transforms and cores, after an equality check."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import PIL
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace._base.cores import allowed_cpus, bind_thread, can_bind, usable_cores
from headrace._base.errors import HeadraceError
from headrace._cli import recipes
from headrace._cli.demo.equality_proof import count_same_batches
from headrace._reports.loader import machine
from headrace.datasets.sources import ImageFolder
from headrace.loader import DataLoader

BATCH = 64
_NAMES = ("torch", "headrace")


class NoOpponentError(HeadraceError, RuntimeError):
    """torch's DataLoader cannot run with worker processes here."""


@contextmanager
def limit_cpus(cpus: set[int]) -> Iterator[None]:
    """Restricts this thread, and the threads and processes that it starts, to these CPUs."""
    before = allowed_cpus()
    bind_thread(0, cpus)
    try:
        yield
    finally:
        bind_thread(0, before)


def make_loaders(root: Path, workers: int) -> dict[str, TorchDataLoader[object]]:
    """Returns both loaders over one dataset, with the same arguments."""
    dataset = ImageFolder(root, recipes.train())
    arguments = {"batch_size": BATCH, "shuffle": True, "num_workers": workers, "persistent_workers": True}
    return {"torch": TorchDataLoader(dataset, **arguments), "headrace": DataLoader(dataset, **arguments)}  # type: ignore[arg-type]


def measure_speeds(root: Path, rounds: int, seconds: float) -> dict[tuple[str, int], list[float]]:
    """Images a second of every round, by contender and number of cores (1, and 2 where there are two).

    Args:
        rounds: number of rounds; every contender runs once per round, in turn.
        seconds: minimum duration of a measurement, which covers whole epochs.

    Raises:
        AssertionError: the batches of the two loaders differ.
        NoOpponentError: torch's loader cannot run its workers here, or the system cannot limit it to some cores.
    """
    if not can_bind():
        raise NoOpponentError("this operating system cannot limit a process to some cores, as the comparison needs")
    allowed = sorted(allowed_cpus())
    counts = (1, 2) if usable_cores() > 1 else (1,)
    evaluation = ImageFolder(root, recipes.evaluation())
    batches = count_same_batches(
        TorchDataLoader(evaluation, BATCH), DataLoader(evaluation, BATCH, num_workers=counts[-1])
    )
    print(f"   Checked first: {batches} batches of evaluation are torch.equal; training batches were compared above.")
    contenders = {}
    for count in counts:  # torch's processes are forked before headrace starts threads
        with limit_cpus(set(allowed[:count])):
            contenders[count] = make_loaders(root, count)
            _check_that_torch_delivers(contenders[count]["torch"])
    speeds: dict[tuple[str, int], list[float]] = {(name, count): [] for count in counts for name in _NAMES}
    for number in range(rounds + 1):
        for count in counts:
            for name in _NAMES:
                with limit_cpus(set(allowed[:count])):
                    speed = _measure(contenders[count][name], seconds if number > 0 else 0.0)
                if number > 0:  # round 0 starts threads and warms caches
                    speeds[name, count].append(speed)
    for pair in contenders.values():
        for loader in pair.values():
            if isinstance(loader, DataLoader):
                loader.close()
    return speeds


def _drain(loader: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> int:
    return sum(len(labels) for _, labels in loader)


def _check_that_torch_delivers(loader: TorchDataLoader[object]) -> None:
    """Runs one epoch. Raises NoOpponentError if torch's workers cannot start or cannot deliver their batches."""
    try:
        multiprocessing.Lock()  # needs /dev/shm; without it torch's iterator would fail half constructed
        _drain(loader)
    except (OSError, RuntimeError) as error:  # torch raises RuntimeError if workers die because /dev/shm is full
        why = (str(error).splitlines() or [type(error).__name__])[-1]  # the last line of a worker's traceback
        raise NoOpponentError(
            f"torch's DataLoader cannot run worker processes here ({why}); they need a /dev/shm with space for several "
            "batches of 40 MB"
        ) from error


def _measure(loader: TorchDataLoader[object], seconds: float) -> float:
    """Returns images per second over whole epochs."""
    images, begin = 0, time.perf_counter()
    while True:
        images += _drain(loader)
        elapsed = time.perf_counter() - begin
        if elapsed >= seconds:
            return images / elapsed


def format_speed_table(speeds: dict[tuple[str, int], list[float]]) -> str:
    """Returns a printable table with the median, smallest and largest speed over the rounds."""
    counts = sorted({count for _, count in speeds})
    rounds = len(speeds["torch", counts[0]])
    heads = "".join(f"{f'{count} core' + 's' * (count > 1):>26}" for count in counts)
    lines = [f"   {'images per second':<28}{heads}"]
    for name, label in (("torch", "torch's DataLoader + Pillow"), ("headrace", "headrace")):
        cells = []
        for count in counts:
            values = speeds[name, count]
            cells.append(f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})")
        lines.append(f"   {label:<28}" + "".join(f"{cell:>26}" for cell in cells))
    ratios = (statistics.median(speeds["headrace", n]) / statistics.median(speeds["torch", n]) for n in counts)
    lines.append(f"   {'times as fast':<28}" + "".join(f"{f'{ratio:.2f}':>26}" for ratio in ratios))
    runs = f"{rounds} interleaved rounds" if rounds > 1 else "one round"
    lines.append(f"   Median of {runs} (smallest to largest), batch {BATCH}, num_workers = cores.")
    lines.append(f"   {machine.cpu_name()}; torch {torch.__version__}, Pillow {PIL.__version__}.")
    if (warning := machine.warning_if_busy()) is not None:
        lines.append(f"   {warning}")
    return "\n".join(lines)
