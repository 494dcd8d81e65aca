"""The epochs of a loader whose batches torch delivers: their numbers, and with a seed what torch draws in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from headrace.draws import epoch_seed
from headrace.order import base_seed
from headrace.sampling import asked_of, followers, samplers_of, tell

_WORKERS = 0x5851F42D4C957F2D  # apart from the seed of the order


class TorchEpochs:
    """Begins epochs of torch's iterator.

    Args:
        seed: decides order and worker seeds together with the epoch; None: all is drawn as torch draws it.
    """

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._next = 0

    @property
    def upcoming(self) -> int:
        """The number of the epoch that `begin` would begin."""
        return self._next

    def set(self, loader: Any, epoch: int) -> None:
        """The next epoch is this one; the samplers are told."""
        self._next = epoch
        samplers = samplers_of(loader.sampler, loader.batch_sampler)
        tell(samplers, epoch)
        for one in followers(samplers):
            one.told(epoch)

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
        given = loader.generator
        base_seed(given)  # the generators of the user move as they do on the native path
        # For this moment only: a loader that holds a generator does not go into a spawned process.
        loader.generator = torch.Generator().manual_seed(epoch_seed(self._seed ^ _WORKERS, epoch))
        try:
            iterator: Any = start()
        finally:
            loader.generator = given
        if told:  # drawn at once: two epochs may be begun before the first batch of either is asked for
            batches = iterator._sampler_iter
            iterator._sampler_iter = itertools.chain(list(itertools.islice(batches, 1)), batches)
        return iterator  # type: ignore[no-any-return]
