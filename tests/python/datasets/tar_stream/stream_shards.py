"""Shards on a server on this machine, what they hold, and the order of a stream computed another way."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "storage/remote"))

from object_stores import EACH, PATTERN, SHARDS, Faults, ObjectServer, write_shards

import headrace
from headrace import TarStream
from headrace import transforms as T

__all__ = ["EACH", "PATTERN", "SHARDS", "Faults", "ObjectServer", "write_shards"]

_MASK = 2**64 - 1


def keys_of(folder: Path) -> list[list[str]]:
    """The keys of each shard, in its order, as Python's tarfile reads them."""
    found = []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            found.append([name[:-4] for name in tar.getnames() if name.endswith(".jpg")])
    return found


def expected(shards: list[list[str]], buffer: int, seed: int, epoch: int) -> list[str]:
    """The keys of an epoch of one rank, from the definition of the order: shards by torch.randperm, and a buffer that
    has 100 samples at first, and one more each time that one has left it."""
    key = (seed * 0x9E3779B97F4A7C15 + (epoch + 1) * 0xD1B54A32D192ED03) % 2**63
    generator = torch.Generator().manual_seed(key)
    coming = [one for shard in torch.randperm(len(shards), generator=generator).tolist() for one in shards[shard]]
    held: list[str] = []
    order: list[str] = []
    while coming or held:
        while coming and len(held) < min(buffer, 100 + len(order)):
            held.append(coming.pop(0))
        word = (key * 0x9E3779B97F4A7C15 + len(order) + 0x9E3779B97F4A7C15) & _MASK
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        place = (word ^ (word >> 31)) % len(held)
        order.append(held[place])
        held[place] = held[-1]
        held.pop()
    return order


def plain() -> T.Compose:
    """Transforms without random numbers."""
    return T.Compose([T.Resize(20), T.CenterCrop(16), T.PILToTensor()])


def stream(server: ObjectServer, pattern: str = PATTERN, **options: Any) -> TarStream:
    return TarStream(f"{server.url}/{pattern}", **{"transform": plain()} | options)


def loader(dataset: TarStream, workers: int = 2, **options: Any) -> headrace.DataLoader[Any]:
    made: headrace.DataLoader[Any] = headrace.DataLoader(
        dataset, **{"batch_size": 8, "num_workers": workers, "seed": 0} | options
    )
    assert made.native, made.explain()
    return made


def keys(batches: Any) -> list[Any]:
    """The labels of batches of a stream with ``label="__key__"``."""
    return [key for _, labels in batches for key in labels]
