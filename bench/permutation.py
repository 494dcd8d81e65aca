"""Compares a computed shuffle with a stored one: ns per index and memory, after a check that both are permutations.

    python -m bench.permutation [--samples 10000000] [--rounds 5] [--cores 1] [--out NAME.json]

Contenders, interleaved: torch's RandomSampler and PermutationSampler over the same number of samples, and
PermutationSampler over 10**10; each is read index by index and in batches of torch's BatchSampler. Memory is the growth
of the peak resident set, measured in a separate process for each.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import BatchSampler, RandomSampler

from bench.machine import describe, options_of
from headrace.sampler import PermutationSampler

BILLIONS = 10**10
BATCH = 256


def exhaust(indices: Iterable[object]) -> None:
    collections.deque(indices, maxlen=0)


def work(samples: int) -> dict[str, tuple[Callable[[], None], int]]:
    """name -> (the timed function, the number of indices that it makes)."""
    ours, many, theirs = PermutationSampler(samples), PermutationSampler(BILLIONS), RandomSampler(range(samples))
    positions = np.random.default_rng(0).integers(0, BILLIONS, samples // 10)
    batches = samples // 10 // BATCH
    return {
        "torch.randperm, tolist": (lambda: exhaust(torch.randperm(samples).tolist()), samples),
        "RandomSampler": (lambda: exhaust(theirs), samples),
        "RandomSampler, batches": (lambda: exhaust(BatchSampler(theirs, BATCH, True)), samples),
        "PermutationSampler": (lambda: exhaust(ours), samples),
        "PermutationSampler, batches": (lambda: exhaust(BatchSampler(ours, BATCH, True)), samples),
        "PermutationSampler.at, 10**10": (lambda: exhaust((many.at(positions),)), len(positions)),
        "PermutationSampler, 10**10": (lambda: exhaust(itertools.islice(many, len(positions))), len(positions)),
        "PermutationSampler, 10**10, batches": (
            lambda: exhaust(itertools.islice(BatchSampler(many, BATCH, True), batches)),
            batches * BATCH,
        ),
    }


def largest_mib() -> float:
    """The peak resident set of this process. getrusage's value is inherited from the parent process."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def growth_mib(name: str, samples: int) -> float:
    """The growth of the peak resident set by one pass."""
    run = work(samples)[name][0]
    exhaust(RandomSampler(range(1000)))  # loads what is loaded once
    exhaust(PermutationSampler(1000))
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the present size
    before = largest_mib()
    run()
    return largest_mib() - before


def main() -> None:
    """Runs all contenders in turn for several rounds, on the same cores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10**7)
    options = options_of(parser, cores=1, rounds=5)
    for sampler in (RandomSampler(range(options.samples)), PermutationSampler(options.samples)):
        order = np.fromiter(sampler, dtype=np.int64)
        assert np.array_equal(np.bincount(order), np.ones(options.samples)), "an epoch must hold each sample once"
    del order

    contenders = work(options.samples)
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, (run, indices) in contenders.items():
            begin = time.perf_counter()
            run()
            figures[name].append(1e9 * (time.perf_counter() - begin) / indices)
    fresh = multiprocessing.get_context("spawn")
    memory = {}
    for name in contenders:
        with fresh.Pool(1) as pool:
            memory[name] = pool.apply(growth_mib, (name, options.samples))
    for name, each in figures.items():
        print(
            f"{name}: {statistics.median(each):.0f} ns an index ({min(each):.0f} to {max(each):.0f}), "
            f"{memory[name]:.1f} MiB"
        )
    if options.out:
        versions = {"torch": torch.__version__, "numpy": np.__version__}
        found = {"machine": describe(), "versions": versions, "options": str(vars(options))}
        options.out.write_text(json.dumps({**found, "ns_an_index": figures, "growth_mib": memory}, indent=1))


if __name__ == "__main__":
    main()
