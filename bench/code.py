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
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from bench.datasets import PHOTOS, REPOSITORY
from headrace import pillow

sys.path.insert(0, str(REPOSITORY / "tests" / "python"))
from torchvision_shim import import_torchvision

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Files(Dataset[Any]):
    """Paths and a transform."""

    def __init__(self, paths: list[Path], transform: Any) -> None:
        self.paths, self.transform = paths, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.open(self.paths[index]).convert("RGB")), index


def programs() -> dict[str, Any]:
    """Transforms by name."""
    T = import_torchvision().transforms
    end = [T.ToTensor(), T.Normalize(MEAN, STD)]
    return {
        "train": T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *end]),
        "eval": T.Compose([T.Resize(256), T.CenterCrop(224), *end]),
        "train, up to bytes": T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.PILToTensor()]),
    }


def epoch(data: Files) -> tuple[float, list[Any]]:
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
        data = Files(paths, transform)
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
