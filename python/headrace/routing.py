"""Decides who delivers a loader's batches: headrace's own threads, or torch's DataLoader, and why."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch.utils.data import default_collate, default_convert

from headrace.lowering import LoweringError, lower
from headrace.recipe import Recipe
from headrace.recognition import attributes, leaves
from headrace.sources import BlobDataset, NotNative, Variant, as_source


@dataclass(frozen=True)
class Lowered:
    """A transform, and what was in it when it was lowered: "" where the object itself is called, with what is in it
    then."""

    transform: Any
    held: str


@dataclass(frozen=True)
class Native:
    """headrace delivers.

    Attributes:
        source: where the samples lie.
        recipe: what is made of the samples.
        lowered: the transforms that it was made of.
    """

    source: BlobDataset
    recipe: Recipe
    lowered: tuple[Lowered, ...]

    @functools.cached_property
    def fingerprint(self) -> str:
        """Of the source; it takes milliseconds, and a state may be saved with each batch."""
        return self.source.fingerprint()


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
    reason = _needs_python(batched, collate_fn, worker_init_fn)
    if reason is not None:
        return Handed(reason)
    try:
        return _native(as_source(dataset), dtype)
    except (NotNative, LoweringError) as error:
        return Handed(str(error))


def renewed(route: Native, loader: Any) -> Native | Handed:
    """The route of a loader's next epoch: the same, unless what the dataset holds, its transform and the attributes of
    that, or the loader's ``collate_fn`` or ``worker_init_fn`` is another one now.

    Raises:
        RuntimeError: the dataset's length is another one.
    """
    reason = _needs_python(loader.batched, loader.collate_fn, loader.worker_init_fn)
    if reason is not None:
        return Handed(reason)
    try:
        source = route.source if route.source.is_current() else as_source(loader.dataset)
        if len(source) != len(route.source):
            raise RuntimeError(
                f"the dataset had {len(route.source)} samples when this loader was made and has {len(source)} now; "
                "make a new DataLoader"
            )
        if source is route.source and _same(_lowered(source.variants, route.recipe), route.lowered):
            return route
        return _native(source, loader.dtype)
    except (NotNative, LoweringError) as error:
        return Handed(str(error))


def _needs_python(
    batched: bool, collate_fn: Callable[..., Any] | None, worker_init_fn: Callable[[int], None] | None
) -> str | None:
    if collate_fn is not None and collate_fn is not (default_collate if batched else default_convert):
        return "collate_fn takes lists of samples, which native threads never make; leave it out"
    if worker_init_fn is not None:
        return "worker_init_fn runs in worker processes, and native threads run no Python; leave it out"
    return None


def _native(source: BlobDataset, dtype: torch.dtype | None) -> Native:
    variants = source.variants
    different = {(id(one.transform), one.channels, one.size): one for one in variants}
    first, *others = (
        lower(one.transform, dtype=dtype, channels=one.channels, size=one.size) for one in different.values()
    )
    for other in others:
        if other != first or not other.maps_bytes_as(first):
            raise NotNative(
                "the datasets of the ConcatDataset have transforms that make other images; give them the same one"
            )
    return Native(source, first, _lowered(variants, first))


def _lowered(variants: tuple[Variant, ...], recipe: Recipe) -> tuple[Lowered, ...]:
    different = {id(one.transform): one.transform for one in variants}
    return tuple(
        Lowered(leaf, "" if number in recipe.in_python and not recipe.variants else attributes(leaf))
        for transform in different.values()
        for number, leaf in enumerate(leaves(transform))
    )


def _same(now: tuple[Lowered, ...], then: tuple[Lowered, ...]) -> bool:
    return len(now) == len(then) and all(
        a.transform is b.transform and a.held == b.held for a, b in zip(now, then, strict=True)
    )
