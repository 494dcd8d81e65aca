"""Compares a mixture of four datasets with one dataset of the same files: samples/s, and what planning an epoch costs.

The mixture is timed with one transform for all, and with four that differ, of one output. Rounds take turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import time
from pathlib import Path
from typing import Any

from bench.machine import describe, options_of
from headrace import DataLoader, ImageFiles, transforms
from headrace.datasets import Mixture
from headrace.sampler import MixtureSampler

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
WEIGHTS = (4, 3, 2, 1)


def train(size: int = 224, low: float = 0.08) -> Any:
    """Random crop, flip, normalised float32."""
    crop = transforms.RandomResizedCrop(size, scale=(low, 1.0))
    return transforms.Compose(
        [crop, transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    )


def mixture(files: list[str], steps: list[Any]) -> Mixture:
    """Four datasets of all files, with a transform each."""
    pairs = zip(steps, WEIGHTS, strict=True)
    parts = {f"d{n}": (ImageFiles(files, None, step), weight) for n, (step, weight) in enumerate(pairs)}
    return Mixture(parts, epoch_size=4 * len(files))


def rate(loader: Any, seconds: float) -> tuple[float, float]:
    """Samples a second, and samples a second of CPU time, which other programs hardly change; of whole epochs, over at
    least `seconds`."""
    samples, begin, worked = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        samples += sum(len(images) for images in loader)
    return samples / (time.perf_counter() - begin), samples / (time.process_time() - worked)


def plan_costs() -> dict[str, float]:
    """Costs of the order of 10**9 samples of four datasets of 10**9 to 4 * 10**9 rows."""
    begin = time.perf_counter()
    sampler = MixtureSampler(Mixture({f"d{n}": (range(n * 10**9), n) for n in range(1, 5)}, epoch_size=10**9), 1)
    order = sampler.iter_from(900_000_000)
    next(order)
    first = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = sum(1 for _ in itertools.islice(order, 2_000_000))
    end = time.perf_counter()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    return {"resume_ms": 1e3 * (first - begin), "ns_each": 1e9 * (end - first) / count, "grown_mib": grown / 1024}


def main() -> None:
    """The costs of an order, then the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--files", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = options_of(parser, cores=2, rounds=5)
    costs = plan_costs()
    print("10**9 samples: " + ", ".join(f"{name} {value:.1f}" for name, value in costs.items()))
    files = [str(path) for path in sorted(options.folder.rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg")]
    files = files[: options.files]
    one, each = train(), [train(224, low) for low in (0.08, 0.08001, 0.08002, 0.08003)]
    datasets = {
        "one": ImageFiles(files * 4, None, one),
        "mixture": mixture(files, [one] * 4),
        "different": mixture(files, each),
    }
    loaders = {
        name: DataLoader(dataset, options.batch, True, num_workers=options.cores, persistent_workers=True, seed=0)
        for name, dataset in datasets.items()
    }
    for name, loader in loaders.items():
        assert loader.native, loader.explain()
        print(f"{name}: {loader.verify(4)}")
        rate(loader, 2 * options.seconds)  # the rows of the JPEGs are learned
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in loaders}
    for _ in range(options.rounds):
        for name, loader in loaders.items():
            rates[name].append(rate(loader, options.seconds))
    print(f"one: {statistics.median(whole for whole, _ in rates['one']):,.0f} samples/s")
    for name in ("mixture", "different"):
        for kind, what in enumerate(("a second", "a second of CPU")):
            ratios = [a[kind] / b[kind] for a, b in zip(rates[name], rates["one"], strict=True)]
            print(f"{name}: {statistics.median(ratios):.3f} times ({min(ratios):.3f} to {max(ratios):.3f}) {what}")
    if options.out:
        figures = {"machine": describe(), "files": len(files), "plan": costs, "rates": rates}
        options.out.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
