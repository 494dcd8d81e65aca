"""Times epochs over files that are on the disk, and the same epochs over files in the kernel's page cache.

    python -m bench.storage.cold [--images DIR] [--folder DIR] [--files N] [--cores N] [--rounds N] [--kind KIND]

The images are copied until there are N files, or packed into tar shards of 500. Before a cold epoch they are written to
the disk and dropped from the cache (`posix_fadvise`), for which the folder has to be on a disk, not in memory. torch's
DataLoader reads the files alone. The loaders take turns, with as many threads or worker processes as cores; the batches
are compared with the oracle first. The figures are images a second: the median and the range over the rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import mmap
import os
import shutil
import statistics
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from bench.contenders._common import import_torchvision, torchvision_transform
from bench.datasets import PHOTOS, data_folder
from bench.machine import pick_cpus

BATCH, A_SHARD = 32, 500


def laid_out(images: Path, folder: Path, files: int, kind: str) -> list[Path]:
    """Copies the JPEG files of `images` over and over, as files or into shards; returns what was written."""
    found = sorted(path for path in images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    if kind == "files":
        for number in range(files):
            to = folder / f"{number % 10}" / f"{number:06d}.jpg"
            to.parent.mkdir(exist_ok=True)
            shutil.copyfile(found[number % len(found)], to)
        return sorted(folder.rglob("*.jpg"))
    for first in range(0, files, A_SHARD):
        with tarfile.open(folder / f"{first // A_SHARD:05d}.tar", "w") as shard:
            for number in range(first, min(first + A_SHARD, files)):
                shard.add(found[number % len(found)], f"{number:06d}.jpg")
                label = tarfile.TarInfo(f"{number:06d}.cls")
                label.size = 1
                shard.addfile(label, io.BytesIO(b"0"))
    return sorted(folder.glob("*.tar"))


def resident(path: Path) -> bool:
    """Whether the first page of a file is in the page cache."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        begin = np.frombuffer(mapped, np.uint8).ctypes.data
        pages = ctypes.create_string_buffer(-(-len(mapped) // mmap.PAGESIZE))
        if ctypes.CDLL(None).mincore(ctypes.c_void_p(begin), ctypes.c_size_t(len(mapped)), pages) != 0:
            sys.exit("the system does not say which pages are in memory")
        return pages.raw[0] % 2 == 1


def evict(paths: list[Path]) -> None:
    """Drops the files from the page cache; exits where the file system keeps them."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    kept = sum(map(resident, paths))
    if kept > len(paths) // 100:
        sys.exit(f"{kept} of {len(paths)} files stay in memory: choose a --folder on a disk")


def rate(loader: Any, samples: int) -> float:
    """Images a second of an epoch."""
    begin = time.perf_counter()
    for _ in loader:
        pass
    return samples / (time.perf_counter() - begin)


def shown(rates: list[float]) -> str:
    return f"{statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"


def loaders(folder: Path, paths: list[Path], kind: str, cores: int) -> dict[str, Any]:
    """The loaders by name, after a comparison of headrace's batches with the oracle's."""
    import_torchvision()
    transform = torchvision_transform("train")
    from torchvision.datasets import ImageFolder

    dataset: Any = (
        ImageFolder(str(folder), transform)
        if kind == "files"
        else headrace.TarShards([str(path) for path in paths], transform=transform)
    )
    options: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "num_workers": cores}
    made: dict[str, Any] = {"headrace": headrace.DataLoader(dataset, **options)}
    made["headrace"].verify(2)
    if kind == "files":
        made["torch"] = TorchDataLoader(dataset, persistent_workers=True, **options)
    return made


def add_options(parser: argparse.ArgumentParser, files: int, rounds: int) -> None:
    """Adds the options of benchmarks whose files are on a disk."""
    real = data_folder() / "imagenet_dev"
    parser.add_argument("--images", type=Path, default=real if real.is_dir() else PHOTOS, metavar="DIR")
    parser.add_argument("--folder", type=Path, help="on the disk that is measured (default: the temporary folder)")
    parser.add_argument("--files", type=int, default=files)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=rounds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.storage.cold", description=__doc__.splitlines()[0])
    add_options(parser, files=3000, rounds=5)
    parser.add_argument("--kind", choices=("files", "tar"), default="files")
    options = parser.parse_args()
    os.sched_setaffinity(0, pick_cpus(options.cores))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        paths = laid_out(options.images, Path(name), options.files, options.kind)
        contenders = loaders(Path(name), paths, options.kind, options.cores)
        found: dict[tuple[str, str], list[float]] = {}
        for loader in contenders.values():
            rate(loader, options.files)
        for _ in range(options.rounds):
            for title, loader in contenders.items():
                evict(paths)
                for state in ("cold", "warm"):
                    found.setdefault((title, state), []).append(rate(loader, options.files))
    for (title, state), rates in found.items():
        print(f"{title}, {state}: {shown(rates)} images/s")


if __name__ == "__main__":
    main()
