"""Prints the time from the construction of a loader to its first batch of 64. The limit is 0.3 s on two cores."""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from headrace import DataLoader, ImageFolder, transforms


def main() -> None:
    """Constructs the loader several times; the first time includes what a process makes once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, help="a folder of class folders")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    train = transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
    seconds = []
    for _ in range(options.rounds):
        begin = time.perf_counter()
        loader = DataLoader(ImageFolder(options.root, train), batch_size=64, shuffle=True, num_workers=options.workers)
        images, _ = next(iter(loader))
        seconds.append(time.perf_counter() - begin)
        assert len(images) == 64
        loader.close()
    print(
        f"first batch of 64 with {options.workers} threads: {seconds[0]:.3f} s in a new process, then median "
        f"{statistics.median(seconds[1:]):.3f} s ({min(seconds[1:]):.3f} to {max(seconds[1:]):.3f}) "
        f"over {options.rounds - 1} loaders"
    )


if __name__ == "__main__":
    main()
