"""Batches of indices that seed the process's generators before each sample, where torch's DataLoader makes it.

Note [seeded where they arrive]: the generators have to be seeded in the worker process, between samples, and without a
wrapper of the dataset: the user's code sees its dataset, and tracebacks are torch's. So the indices do it. torch's own
code iterates over a batch of indices and gets a sample after each step; an index that is used as a whole is seeded for
when the worker unpickles it, which it does immediately before it uses it. See decision 0026.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from torch.utils.data import Subset

from headrace._base.types import State
from headrace._loading.epoch.planned_occurrences import PlannedOccurrences
from headrace._loading.epoch.sampler_setup import order_of
from headrace._loading.epoch.torch_loader import TorchLoader
from headrace._recipe.draws.index_keys import Key, KeyCounts, index_key
from headrace._recipe.draws.sample_reseeding import seed_for_batch, seed_for_sample
from headrace.sampler.distributed import RankSampler

Seeding = tuple[int, int, object, object]  # arguments of `seed_for_sample`


class SeededSamples:
    """A batch of indices: iterating over it seeds for each sample, and after the last one for collate_fn.

    Args:
        indices: what the sampler yielded; also an attribute.
        position: seed, epoch, and number of the batch in the epoch.
        occurrences: how often the epoch named each index before; None: never.
    """

    def __init__(
        self, indices: Iterable[object], position: tuple[int, int, int], occurrences: list[int] | None
    ) -> None:
        self.indices, self._position, self._occurrences = indices, position, occurrences

    def __iter__(self) -> Iterator[object]:
        seed, epoch, batch = self._position
        occurrences = itertools.repeat(0) if self._occurrences is None else self._occurrences
        for index, occurrence in zip(self.indices, occurrences, strict=False):
            seed_for_sample(seed, epoch, index_key(index), occurrence)
            yield index
        seed_for_batch(seed, epoch, batch)

    def seed_and_return(self) -> SeededSamples:
        """Returns what torch's fetcher is given."""
        return self


class SeededCall:
    """An index, or a batch of them, with which the dataset is called once; unpickled, it is `arrive`'s result.

    Args:
        indices: what the sampler yielded; also an attribute.
        what: arguments of `seed_for_sample`.
    """

    def __init__(self, indices: object, what: Seeding) -> None:
        self.indices, self._what = indices, what

    def seed_and_return(self) -> object:
        """Seeds the generators and returns the index."""
        return _seed_index(self.indices, self._what)

    def __reduce__(self) -> tuple[object, ...]:
        return _seed_index, (self.indices, self._what)


def _seed_index(index: object, what: Seeding) -> object:
    seed_for_sample(*what)
    return index


class SampleSeeds:
    """Prepares the batches of indices of one epoch, in the order in which they are drawn.

    Occurrences are counted over all ranks if the loader shards its order, otherwise in this process.

    Args:
        loader: torch's loader of a map-style dataset; its arguments are read, but no reference is kept.
        length: number of samples in the dataset; None if it has no length.
    """

    def __init__(self, loader: TorchLoader, length: int | None, seed: int, epoch: int) -> None:
        self._seed, self._epoch = seed, epoch
        self._batched = loader.batch_sampler is not None
        self._each = self._batched and _makes_samples_singly(loader.dataset)
        order = order_of(loader.sampler, loader.batch_sampler, length or 0, seed)
        self._share = order.cut.share
        self._of_batches = self._batched and order.cut.batch_size is None  # whether the shared items are batches
        self._planned = PlannedOccurrences.of(order.items, self._share)
        self._counts = None if order.unique or self._planned is not None else KeyCounts(length or 0)
        self._known: Iterator[int] | None = None  # occurrences of this rank's samples
        self._log: deque[tuple[int, list[Key]]] = deque()  # batches with their keys, since the oldest kept state

    @property
    def can_jump(self) -> bool:
        """Whether batches may be skipped without being passed to `take`."""
        known = self._planned is not None or self._share.world_size == 1
        return known and self._counts is None and self._known is None

    def jump(self, samples: int, offset: int) -> None:
        """Goes on after this rank's first samples, which were skipped; before them were `offset` of all ranks."""
        if self._planned is not None:
            self._planned.jump(samples, offset)

    def iterate(self, sampler: Iterable[object]) -> Iterator[object]:
        """Returns ``iter(sampler)``; if it is one rank's share, counts the occurrences in the order of all ranks."""
        if self._share.world_size == 1 or self._planned is not None or not isinstance(sampler, RankSampler):
            return iter(sampler)
        order = list(sampler.whole)
        items = self._share.even(order, order)
        self._known = iter(self._count_occurrences(items, len(order)))
        return iter(self._share.select_items(items))

    def _count_occurrences(self, items: list[Any], named: int) -> list[int]:
        """Returns the occurrences of this rank's samples.

        Args:
            items: the order of all ranks; those from position `named` on repeat the first ones.
        """
        found: list[int] = []
        for number, item in enumerate(items):
            indices = item if self._of_batches else [item]
            if self._counts is None:
                occurrences = [number // named] * len(indices)
            else:
                occurrences = [self._counts.take(index_key(index)) for index in indices]
            if number % self._share.world_size == self._share.rank:
                found += occurrences
        return found

    def take(self, batch: int, item: Any) -> SeededSamples | SeededCall:
        """Returns the batch of this number in the epoch, prepared.

        Raises:
            TypeError: an index has no key.
        """
        if self._batched and not hasattr(item, "__len__"):
            item = list(item)
        occurrences = self._occurrences(batch, item if self._batched else [item])
        if self._each:
            return SeededSamples(item, (self._seed, self._epoch, batch), occurrences)
        if not self._batched:
            return SeededCall(item, (self._seed, self._epoch, index_key(item), occurrences[0] if occurrences else 0))
        keys = [index_key(index) for index in item]
        return SeededCall(item, (self._seed, self._epoch, keys, occurrences or [0] * len(keys)))

    def _occurrences(self, batch: int, indices: Collection[object]) -> list[int] | None:
        if self._planned is not None:
            planned: list[int] = self._planned.take(len(indices)).tolist()
            return planned
        if self._known is not None:
            return list(itertools.islice(self._known, len(indices)))
        if self._counts is None:
            return None
        keys = [index_key(index) for index in indices]
        self._log.append((batch, keys))
        return [self._counts.take(key) for key in keys]

    # ---- if the samplers have states, the batches before a state are not drawn again ---------------------------------

    def pack_counts(self, batch: int) -> State | None:
        """Returns the counts before this batch was drawn, as numbers and strings; None if nothing is counted."""
        if self._counts is None or self._known is not None:
            return None
        return self._counts.pack_counts(key for at, keys in self._log if at >= batch for key in keys)

    def forget(self, batch: int) -> None:
        """Says that `pack_counts` will not be asked for an earlier batch."""
        while self._log and self._log[0][0] < batch:
            self._log.popleft()

    def restore(self, packed: State | None) -> None:
        """Sets the counts to those that `pack_counts` returned."""
        if self._counts is not None and packed is not None:
            self._counts.restore(packed)


def _makes_samples_singly(dataset: object) -> bool:
    """Whether torch's code asks the dataset for one sample after the other, and not for a whole batch."""
    if not getattr(dataset, "__getitems__", None):
        return True
    return type(dataset) is Subset and not callable(getattr(dataset.dataset, "__getitems__", None))
