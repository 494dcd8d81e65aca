"""Times programs that open images themselves in torch's DataLoader: Pillow's images, and headrace's deferred ones.

    python -m bench.code [--images DIR] [--rounds N]

Both take turns in this process, without workers, and their batches must be equal, random numbers included. The figure
is the ratio of the CPU times of a sample: the median and the range over the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from bench.contenders._common import MEAN, SHORTER_SIDE, SIZE, STD
from bench.datasets import PHOTOS, REPOSITORY
from headrace import pillow

sys.path.insert(0, str(REPOSITORY / "tests" / "python"))
from own_dataset import OwnDataset
from torchvision_shim import import_torchvision


def programs() -> dict[str, Any]:
    """Transforms by name."""
    T = import_torchvision().transforms
    end = [T.ToTensor(), T.Normalize(MEAN, STD)]
    return {
        "train": T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), *end]),
        "eval": T.Compose([T.Resize(SHORTER_SIDE), T.CenterCrop(SIZE), *end]),
        "train, up to bytes": T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.PILToTensor()]),
    }


def epoch(data: OwnDataset) -> tuple[float, list[Any]]:
    """CPU seconds of a sample, and the batches."""
    torch.manual_seed(1)
    begin = time.process_time()
    batches = list(DataLoader(data, 32, shuffle=True))
    return (time.process_time() - begin) / len(data), batches


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.code", description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, default=PHOTOS, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    paths = sorted(path for path in options.images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    for name, transform in programs().items():
        data = OwnDataset(paths, transform)
        rounds = []
        for _ in range(options.rounds + 1):
            plain, expected = epoch(data)
            with pillow.deferred():
                ours, made = epoch(data)
            for ours_of, theirs_of in zip(made, expected, strict=True):
                if not all(map(torch.equal, ours_of, theirs_of)):
                    sys.exit(f"{name}: the batches differ")
            rounds.append((plain, ours))
        ratios = [plain / ours for plain, ours in rounds[1:]]
        ms = [1e3 * statistics.median(column) for column in zip(*rounds[1:], strict=True)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{name}: {ms[0]:.2f} ms with Pillow, {ms[1]:.2f} ms deferred, {spread} times as fast; batches equal")


if __name__ == "__main__":
    main()
