"""Decides who delivers a loader's batches: headrace's own threads, or torch's DataLoader, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch.utils.data import default_collate, default_convert

from headrace.lowering import LoweringError, lower
from headrace.recipe import Recipe
from headrace.sources import BlobDataset, NotNative, as_source


@dataclass(frozen=True)
class Native:
    """headrace delivers.

    Attributes:
        source: where the samples lie.
        transform: of the source, when it was lowered.
        recipe: what is made of the samples.
    """

    source: BlobDataset
    transform: Any
    recipe: Recipe


@dataclass(frozen=True)
class Handed:
    """torch's DataLoader delivers, with the same arguments and all that it does with them.

    Attributes:
        reason: one sentence: why, and what would make the loader native.
    """

    reason: str

    def refuse(self, what: str) -> NoReturn:
        """Raises RuntimeError: `what` is none of torch's DataLoader."""
        raise RuntimeError(f"{what} needs headrace's native path, but torch's DataLoader serves here: {self.reason}")


def decide(
    dataset: Any,
    batched: bool,
    collate_fn: Callable[..., Any] | None,
    worker_init_fn: Callable[[int], None] | None,
    dtype: torch.dtype | None,
) -> Native | Handed:
    """The route of a loader over `dataset`.

    Args:
        batched: whether samples come in batches, which torch collates by default; single ones it converts.
        dtype: that the images are to have, as in the loader.
    """
    if collate_fn is not None and collate_fn is not (default_collate if batched else default_convert):
        return Handed("collate_fn takes lists of samples, which native threads never make; leave it out")
    if worker_init_fn is not None:
        return Handed("worker_init_fn runs in worker processes, and native threads run no Python; leave it out")
    try:
        source = as_source(dataset)
        return _native(source, dtype)
    except (NotNative, LoweringError) as error:
        return Handed(str(error))


def renewed(route: Native, dtype: torch.dtype | None) -> Native:
    """The same route, lowered again if the dataset's transform is another one now.

    Raises:
        LoweringError: it cannot be lowered. A new loader would be handed to torch.
    """
    return route if route.transform is route.source.transform else _native(route.source, dtype)


def _native(source: BlobDataset, dtype: torch.dtype | None) -> Native:
    transform = source.transform
    return Native(source, transform, lower(transform, dtype=dtype))
