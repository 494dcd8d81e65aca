"""The datasets on which the loader's own choice is compared with fixed values."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import headrace
from bench.verdicts.material import Burning, encoded, files, memory, recipe

SAMPLES = 20_000
SLOW_READ_S = 0.01


def folder(where: Path) -> Any:
    """JPEG files."""
    return files(where, 256, 128)


def tar(where: Path) -> Any:
    """JPEGs in tar shards."""
    images = encoded(256)
    path = where / "shard-000000.tar"
    with tarfile.open(path, "w") as shard:
        for number in range(600):
            for suffix, data in (("jpg", images[number % len(images)]), ("cls", str(number % 10).encode())):
                member = tarfile.TarInfo(f"{number:06}.{suffix}")
                member.size = len(data)
                shard.addfile(member, io.BytesIO(data))
    return headrace.TarShards(str(path), recipe(128))


def raw(where: Path) -> Any:
    """Rows of a mapped array of float32, copied as they are."""
    path = where / "rows.npy"
    np.save(path, np.zeros((SAMPLES // 4, 3, 64, 64), np.float32))
    return headrace.Columns({"images": np.load(path, mmap_mode="r"), "labels": np.arange(SAMPLES // 4)})


def slow(where: Path) -> Any:
    """Small JPEG files on a store that answers each read after 10 ms; see `bench.verdicts.slow_reads`."""
    return files(where, 96, 64)


def python(where: Path) -> Any:
    """JPEGs through a step in Python that computes for 1 ms and holds the interpreter."""
    return memory(256, 128, Burning(0.001))


#: By name: what makes the dataset, the delay of each read in seconds, and the numbers of threads of the sweep.
CASES: dict[str, tuple[Callable[[Path], Any], float, tuple[int, ...]]] = {
    "folder": (folder, 0.0, (1, 2, 3, 4, 8)),
    "tar": (tar, 0.0, (1, 2, 3, 4, 8)),
    "raw": (raw, 0.0, (1, 2, 3, 4, 8)),
    "slow store": (slow, SLOW_READ_S, (1, 2, 4, 8, 16, 32)),
    "python": (python, 0.0, (1, 2, 3, 4, 8)),
}
