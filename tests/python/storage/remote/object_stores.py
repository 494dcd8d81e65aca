"""Tar shards on a server on this machine, and the batches of datasets of them."""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path
from typing import Any

import headrace
from headrace import transforms as T
from support import pictures

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from bench.remote.object_server import Faults, ObjectServer

__all__ = ["EACH", "SHARDS", "Faults", "ObjectServer", "batches", "first_error", "transform", "write_shards"]

SHARDS, EACH = 3, 16
PATTERN = "{000..002}.tar"


def transform() -> T.Compose:
    return T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.PILToTensor()])


def write_shards(folder: Path, shards: int = SHARDS) -> Path:
    """Writes shards 000.tar, 001.tar, ... of EACH samples with a picture, a class and a text."""
    folder.mkdir(exist_ok=True)
    images = pictures(EACH)
    for shard in range(shards):
        with tarfile.open(folder / f"{shard:03}.tar", "w") as tar:
            for i, image in enumerate(images[shard:] + images[:shard]):
                fields = {"jpg": image, "cls": str(i).encode(), "txt": f"text {shard} {i}".encode()}
                for extension, data in fields.items():
                    info = tarfile.TarInfo(f"{shard:03}{i:04}.{extension}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    return folder


def batches(dataset: Any, workers: int = 2, **options: Any) -> list[Any]:
    """An epoch of a shuffled loader, which must be native."""
    loader = headrace.DataLoader(dataset, 8, shuffle=True, num_workers=workers, seed=0, **options)
    assert loader.native, loader.explain()
    return list(loader)


def first_error(dataset: Any, workers: int = 2) -> str:
    """What the epoch of such a loader raises first."""
    try:
        batches(dataset, workers)
    except Exception as error:
        return str(error)
    raise AssertionError("the epoch ended without an error")
