"""Recreates a loader with another batch sampler from its public attributes, as trainers do."""

from __future__ import annotations

import inspect
from typing import Any


def remade(loader: Any, *, batch_sampler: Any) -> Any:
    """Returns a loader with the same arguments and epoch, but another batch sampler.

    Raises:
        RuntimeError: a state was loaded; its position would not be valid in the new order.
    """
    if loader.resumes:
        raise RuntimeError("this loader's batches are sharded again: load the state after accelerator.prepare")
    names = inspect.signature(type(loader).__init__).parameters
    kept = {name: getattr(loader, name) for name in names if hasattr(loader, name)}
    for replaced in ("batch_size", "sampler", "shuffle", "drop_last", "rank", "world_size", "distributed"):
        kept.pop(replaced, None)
    made = type(loader)(**{**kept, "batch_sampler": batch_sampler})
    made.set_epoch(loader.upcoming_epoch)
    return made
