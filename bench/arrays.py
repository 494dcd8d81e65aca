"""Compares loaders of images in memory: CIFAR's training recipe on 50,000 of 32 x 32 pixels, after a verification."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from bench.contenders._common import import_torchvision
from bench.machine import describe, options_of
from headrace import ImageArray, transforms

MEAN, STD = [0.4914, 0.4822, 0.4465], [0.247, 0.2435, 0.2616]


def recipe(T: Any) -> Any:
    """RandomCrop with padding, flip, ToTensor, Normalize: of headrace.transforms or torchvision's."""
    return T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])


def seconds(loader: Iterable[Any], limit: float) -> tuple[float, int]:
    """(time, samples) of whole batches, over as many epochs as `limit` seconds take."""
    samples, begin = 0, time.perf_counter()
    while True:
        for _, labels in loader:
            samples += len(labels)
            if time.perf_counter() - begin > limit:
                return time.perf_counter() - begin, samples


def main() -> None:
    """Runs all loaders in turn for several rounds, on the same cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = options_of(parser, cores=1, rounds=5)
    import_torchvision()
    from torchvision import transforms as theirs

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (options.images, 32, 32, 3), dtype=np.uint8)
    labels = random.integers(0, 10, options.images)

    def ours(workers: int) -> Callable[[], Iterable[Any]]:
        data = ImageArray(images, labels, recipe(transforms))
        loader = headrace.DataLoader(
            data, options.batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )
        print(f"headrace, {workers} threads: {loader.verify(8)}")
        return lambda: loader

    def torchs(workers: int) -> Callable[[], Iterable[Any]]:
        data = ImageArray(images, labels, recipe(theirs))
        loader: Any = TorchDataLoader(
            data, options.batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )
        return lambda: loader

    contenders = {
        f"{name}, num_workers={workers}": make(workers)()
        for workers in (0, options.cores)
        for name, make in (("torch", torchs), ("headrace", ours))
    }
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for loader in contenders.values():  # starts workers, and makes what is made once
        seconds(loader, 0.2)
    for _ in range(options.rounds):
        for name, loader in contenders.items():
            spent, samples = seconds(loader, options.seconds)
            rates[name].append(samples / spent)
    best = [max(rates[f"torch, num_workers={n}"][i] for n in (0, options.cores)) for i in range(options.rounds)]
    for name, figures in rates.items():
        ratios = [rate / other for rate, other in zip(figures, best, strict=True)]
        print(
            f"{name}: {statistics.median(figures):,.0f} images/s ({min(figures):,.0f} to {max(figures):,.0f}), "
            f"{statistics.median(ratios):.2f} times torch's best ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    if options.out:
        options.out.write_text(
            json.dumps({"machine": describe(), "options": str(vars(options)), "rates": rates}, indent=1)
        )


if __name__ == "__main__":
    main()
