"""The epochs of a loader whose batches torch delivers: their numbers, and with a seed what torch draws in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import RandomSampler

from headrace.draws import epoch_seed
from headrace.order import base_seed
from headrace.sampling import asked_of, followers, samplers_of, tell

_WORKERS = 0x5851F42D4C957F2D  # apart from the seed of the order


class TorchEpochs:
    """Begins epochs of torch's iterator.

    Args:
        seed: decides order and worker seeds together with the epoch; None: all is drawn as torch draws it.
        own_order: whether the order of the loader's RandomSampler follows from `seed` instead of a generator.
    """

    def __init__(self, seed: int | None, *, own_order: bool) -> None:
        self._seed, self._own_order = seed, own_order
        self._next = 0

    @property
    def upcoming(self) -> int:
        """The number of the epoch that `begin` would begin."""
        return self._next

    def set(self, loader: Any, epoch: int) -> None:
        """The next epoch is this one; the samplers are told."""
        self._next = epoch
        tell(samplers_of(loader.sampler, loader.batch_sampler), epoch)

    def go_on(self, epoch: int) -> None:
        """The next epoch is this one; the samplers know."""
        self._next = epoch

    def begin(self, loader: Any, start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """The iterator that `start` makes, torch's own for the loader."""
        told = followers(samplers_of(loader.sampler, loader.batch_sampler))
        asked = asked_of(told)
        epoch = self._next if asked is None else asked
        self._next = epoch + 1
        for one in told:
            one.told(epoch)
        if self._seed is None:
            return start()
        given, sampler = loader.generator, loader.sampler
        ordered = self._own_order and isinstance(sampler, RandomSampler)
        base_seed(given)  # the generators of the user move as they do on the native path
        # For this moment only: a loader that holds a generator does not go into a spawned process.
        loader.generator = _generator(epoch_seed(self._seed ^ _WORKERS, epoch))
        if ordered:
            sampler.generator = _generator(epoch_seed(self._seed, epoch))
        try:
            iterator: Any = start()
            if ordered:  # drawn at once: two epochs may be begun before the first batch of either is asked for
                batches = iterator._sampler_iter
                iterator._sampler_iter = itertools.chain(list(itertools.islice(batches, 1)), batches)
            return iterator  # type: ignore[no-any-return]
        finally:
            loader.generator = given
            if ordered:
                sampler.generator = None


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
