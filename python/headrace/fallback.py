"""The epochs of a loader whose batches torch delivers: their numbers, and with a seed what torch draws in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from headrace.draws import epoch_seed
from headrace.order import base_seed
from headrace.sampler.seeded import Seeded
from headrace.sampling import asked_of, begin_with, followers, late_epoch, samplers_of

_WORKERS = 0x5851F42D4C957F2D  # apart from the seed of the order
_RANKS = 0x14057B7EF767814F  # and from each other's


class TorchEpochs:
    """Begins epochs of torch's iterator.

    Args:
        seed: decides order and worker seeds together with the epoch; None: all is drawn as torch draws it.
        rank: of this process: the workers of no two ranks draw the same.
    """

    def __init__(self, seed: int | None, rank: int) -> None:
        self._seed, self._rank = seed, rank
        self._next = 0

    def upcoming(self, loader: Any) -> int:
        """The number of the epoch that `begin` would begin."""
        asked = asked_of(followers(samplers_of(loader.sampler, loader.batch_sampler)))
        return self._next if asked is None else asked

    def set(self, loader: Any, epoch: int) -> None:
        """The next epoch is this one; the samplers are told."""
        self._next = epoch
        begin_with(samplers_of(loader.sampler, loader.batch_sampler), epoch)

    def go_on(self, epoch: int) -> None:
        """The next epoch is this one; the samplers know."""
        self._next = epoch

    def begin(self, loader: Any, start: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        """The iterator that `start` makes, torch's own for the loader."""
        told = followers(samplers_of(loader.sampler, loader.batch_sampler))
        if self._seed is not None:
            base_seed(loader.generator)  # the generators of the user move as they do on the native path
        iterator = self._begin(loader, start, told)
        if not told:
            return iterator
        return _Heeding(iterator, told, lambda: self._begin(loader, start, told))

    def _begin(self, loader: Any, start: Callable[[], Iterator[Any]], told: list[Seeded]) -> Iterator[Any]:
        epoch = self.upcoming(loader)
        self._next = epoch + 1
        for one in told:
            one.told(epoch)
        given = loader.generator
        if self._seed is not None:
            # For this moment only: a loader that holds a generator does not go into a spawned process.
            workers = (self._seed ^ _WORKERS) + self._rank * _RANKS
            loader.generator = torch.Generator().manual_seed(epoch_seed(workers, epoch))
        try:
            iterator: Any = start()
        finally:
            loader.generator = given
        if told:  # drawn at once: two epochs may be begun before the first batch of either is asked for
            batches = iterator._sampler_iter
            iterator._sampler_iter = itertools.chain(list(itertools.islice(batches, 1)), batches)
        return iterator  # type: ignore[no-any-return]


class _Heeding:
    """torch's iterator, made anew where a sampler was told another epoch before the first batch was asked for."""

    def __init__(self, iterator: Any, told: list[Seeded], anew: Callable[[], Any]) -> None:
        self._iterator, self._told, self._epoch = iterator, told, told[0].epoch
        self._anew: Callable[[], Any] | None = anew

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        anew, self._anew = self._anew, None
        if anew is not None and late_epoch(self._told, self._epoch) is not None:
            self._iterator = anew()
        return next(self._iterator)

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> Any:
        if name == "_iterator":  # while it is copied
            raise AttributeError(name)
        return getattr(self._iterator, name)
