"""The datasets on which the loader's own choice is compared with fixed values."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import headrace
from bench.verdicts.material import Burning, encoded, files, memory, recipe

SLOW_READ_S = 0.01
QUOTA = 1.0
_MEMBERS, _ROWS = 5_000, 8_000


def folder(where: Path) -> Any:
    """JPEG files."""
    return files(where, 256, 128)


def tar(where: Path) -> Any:
    """JPEGs in a tar shard."""
    images = encoded(256)
    path = where / "shard-000000.tar"
    if not path.exists():
        with tarfile.open(path, "w") as shard:
            for number in range(_MEMBERS):
                for suffix, data in (("jpg", images[number % len(images)]), ("cls", str(number % 10).encode())):
                    member = tarfile.TarInfo(f"{number:06}.{suffix}")
                    member.size = len(data)
                    shard.addfile(member, io.BytesIO(data))
    return headrace.TarShards(str(path), transform=recipe(128))


def raw(where: Path) -> Any:
    """Rows of a mapped array of float32, copied as they are."""
    path = where / "rows.npy"
    if not path.exists():
        np.save(path, np.zeros((_ROWS, 3, 64, 64), np.float32))
    return headrace.Columns({"images": np.load(path, mmap_mode="r"), "labels": np.arange(_ROWS)})


def slow(where: Path) -> Any:
    """Small JPEG files on a store that answers each read after 10 ms; see `bench.verdicts.slow_reads`."""
    return files(where, 96, 64)


def python(where: Path) -> Any:
    """JPEGs through a step in Python that computes for 1 ms and holds the interpreter."""
    return memory(256, 128, Burning(0.001))


@dataclass(frozen=True)
class Case:
    """Attributes:
    make: makes the dataset, from a folder for its files.
    threads: the fixed numbers of the sweep.
    delay: of each read, in seconds.
    quota: cores of the control group; 0: none.
    """

    make: Callable[[Path], Any]
    threads: tuple[int, ...] = (1, 2, 3, 4, 8)
    delay: float = 0.0
    quota: float = 0.0


_PLAIN = {
    "folder": Case(folder),
    "tar": Case(tar),
    "raw": Case(raw),
    "slow store": Case(slow, (1, 2, 4, 8, 16, 32), SLOW_READ_S),
    "python": Case(python),
}
#: By name: each dataset without a quota, and with one.
CASES = _PLAIN | {f"{name}, quota": replace(case, quota=QUOTA) for name, case in _PLAIN.items()}
