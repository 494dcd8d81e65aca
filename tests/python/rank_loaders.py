"""Loaders of all ranks of a job in one process, and the global batches that they make together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from headrace import DataLoader
from support import blobs, train

FEW = blobs(22, train(24))


def ranks(world_size: int, data: Any = FEW, **options: Any) -> list[DataLoader]:
    return [DataLoader(data, rank=rank, world_size=world_size, **options) for rank in range(world_size)]


def steps(loaders: Iterable[Any]) -> list[list[Any]]:
    """The batches of all ranks, step by step."""
    return [list(step) for step in zip(*loaders, strict=True)]


def interleaved(parts: list[torch.Tensor]) -> torch.Tensor:
    """The global batch in sampler order: item i comes from rank i mod W."""
    return torch.stack(parts, 1).flatten(0, 1)


def whole(loaders: list[Any]) -> list[list[torch.Tensor]]:
    """The global batches: [images, labels]."""
    return [[interleaved([batch[part] for batch in step]) for part in (0, 1)] for step in steps(loaders)]
