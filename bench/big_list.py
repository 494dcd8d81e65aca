"""Prints the memory and the time that a dataset of 1.3 million files takes. The limit is 300 MB and a few seconds."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from headrace import DataLoader, ImageFiles, ImageFolder, transforms


def resident_mb() -> float:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def names(files: int, classes: int, root: str) -> Iterator[str]:
    """Paths like those of ImageNet."""
    for i in range(files):
        label = i * classes // files
        yield f"{root}/n{label:08}/n{label:08}_{i}.JPEG"


def main() -> None:
    """Measures a list of paths and, with --folder, a folder of empty files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_300_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument(
        "--folder", action="store_true", help="also makes and lists an ImageFolder of so many empty files"
    )
    options = parser.parse_args()
    transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
    before, begin = resident_mb(), time.perf_counter()
    labels = np.arange(options.files) * options.classes // options.files
    dataset = ImageFiles(names(options.files, options.classes, "/data/imagenet/train"), labels, transform)
    listed, mb = time.perf_counter() - begin, resident_mb() - before
    begin = time.perf_counter()
    loader = DataLoader(dataset, batch_size=256, shuffle=True, num_workers=2, seed=0)
    iterator = iter(loader)
    started = time.perf_counter() - begin
    print(f"ImageFiles of {options.files:,} paths: {mb:.0f} MB, {listed:.2f} s; loader and iterator {started:.3f} s")
    print(f"with the iterator's own copy of the list: {resident_mb() - before:.0f} MB")
    del iterator, loader, dataset
    if options.folder:
        with tempfile.TemporaryDirectory() as root:
            for label in range(options.classes):
                (Path(root) / f"n{label:08}").mkdir()
            for path in names(options.files, options.classes, root):
                os.close(os.open(path, os.O_CREAT))
            before, begin = resident_mb(), time.perf_counter()
            folder = ImageFolder(root, transform)
            print(
                f"ImageFolder of {len(folder):,} files: {resident_mb() - before:.0f} MB, "
                f"{time.perf_counter() - begin:.2f} s to list"
            )


if __name__ == "__main__":
    main()
