"""One case in this process: the loader chooses alone, then it and the fixed values take turns."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.auto.cases import CASES
from bench.verdicts.slow_reads import set_delay

BATCH = 64
_WARM_UP_S, _WARM_UP = 0.25, 4
_EPOCH = 10_000_000


def turn(loader: Any, seconds: float) -> float:
    """Returns the samples a second of the beginning of an epoch, or of several short ones; its warm-up is not timed."""
    begin = end = 0.0
    batches = 0
    started = time.perf_counter()
    while not begin or end - begin < seconds:
        for number, _ in enumerate(loader):
            end = time.perf_counter()
            if begin:
                batches += 1
            elif number >= _WARM_UP and end - started > _WARM_UP_S:
                begin = end
            if begin and end - begin >= seconds:
                break
    return BATCH * batches / (end - begin)


def alone(loader: Any, seconds: float) -> list[tuple[float, str]]:
    """Lets a loader choose its numbers. Returns what was chosen and when, in seconds from the beginning."""
    begin = time.perf_counter()
    chosen: list[tuple[float, str]] = []
    while time.perf_counter() - begin < seconds:
        for _ in loader:
            now, choice = time.perf_counter() - begin, str(loader._active_tuner._base)
            if not chosen or chosen[-1][1] != choice:
                chosen.append((now, choice))
            if now > seconds:
                break
    return chosen


def one(name: str, rounds: int, seconds: float, auto_seconds: float) -> dict[str, Any]:
    """Returns the speeds of each contender, round by round, and what the loader chose."""
    import torch
    from torch.utils.data import RandomSampler

    import headrace

    torch.set_num_threads(1)
    case = CASES[name]
    with tempfile.TemporaryDirectory() as where:

        def loader(number: Any) -> Any:
            dataset = case.make(Path(where))
            # With replacement, so that an epoch is long: a short one is never tuned.
            sampler: Any = RandomSampler(dataset, replacement=True, num_samples=_EPOCH)
            return headrace.DataLoader(dataset, BATCH, sampler=sampler, num_workers=number, seed=1)

        loaders = {str(number): loader(number) for number in ("auto", *case.threads)}
        auto = loaders["auto"]
        set_delay(case.delay)
        chosen = alone(auto, auto_seconds)
        speeds: dict[str, list[float]] = {contender: [] for contender in loaders}
        for number in range(rounds):
            order = list(loaders)
            random.Random(number).shuffle(order)
            for contender in order:
                speeds[contender].append(turn(loaders[contender], seconds))
        told = auto.stats().tuned
        for one in loaders.values():
            one.close()
        set_delay(0.0)
    return {"case": name, "speeds": speeds, "chosen": chosen, "tuned": str(told)}
