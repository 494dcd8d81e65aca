"""Makes a loader again with other samplers, from its public attributes, as trainers do it."""

from __future__ import annotations

import inspect
from typing import Any


def remade(loader: Any, *, batch_sampler: Any) -> Any:
    """A loader like this one, at the same epoch, whose batches are those that `batch_sampler` names.

    Raises:
        RuntimeError: a state was loaded, whose place in the order of this loader is none in that of the other.
    """
    if loader.resumes:
        raise RuntimeError("this loader's batches are dealt out anew: load the state after accelerator.prepare")
    names = inspect.signature(type(loader).__init__).parameters
    kept = {name: getattr(loader, name) for name in names if hasattr(loader, name)}
    for replaced in ("batch_size", "sampler", "shuffle", "drop_last", "rank", "world_size", "distributed"):
        kept.pop(replaced, None)
    made = type(loader)(**{**kept, "batch_sampler": batch_sampler})
    made.set_epoch(loader.upcoming_epoch)
    return made
