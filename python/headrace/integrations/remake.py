"""Makes a loader again with other samplers, from its public attributes, as trainers do it."""

from __future__ import annotations

import inspect
from typing import Any


def remade(loader: Any, *, batch_sampler: Any) -> Any:
    """A loader like this one, at the same epoch, whose batches are those that `batch_sampler` names."""
    names = inspect.signature(type(loader).__init__).parameters
    kept = {name: getattr(loader, name) for name in names if hasattr(loader, name)}
    for replaced in ("batch_size", "sampler", "shuffle", "drop_last", "rank", "world_size"):
        kept.pop(replaced, None)
    made = type(loader)(**{**kept, "batch_sampler": batch_sampler})
    made.set_epoch(loader.upcoming_epoch)
    return made
