"""Splits an epoch's order among the ranks of a distributed job."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch.utils.data import Sampler
from torch.utils.data.distributed import DistributedSampler as TorchDistributedSampler

from headrace._base.checks import whole_number
from headrace._base.ranks import World
from headrace._recipe.draws.seeded_sampler import Seeded, sampler_chain, set_epoch_of_samplers
from headrace.sampler.random_sequential import random_order

Item = TypeVar("Item")


@dataclass(frozen=True)
class Share(Generic[Item]):
    """One rank's part of an order: items rank, rank + world_size, rank + 2 world_size, ...

    Attributes:
        rank, world_size: this rank and the number of ranks.
        drop_last: how to make the number of items a multiple of `world_size`. True: drop the last items. False: repeat
            the order's first items at its end.
    """

    rank: int = 0
    world_size: int = 1
    drop_last: bool = False

    def even(self, items: list[Item], head: list[Item]) -> list[Item]:
        """Returns the end of an order, shortened or extended to a multiple of `world_size`.

        Args:
            items: the end of the order.
            head: the first items of the order, which are repeated as often as needed.
        """
        over = len(items) % self.world_size
        if not over:
            return items
        if self.drop_last:
            return items[: len(items) - over]
        return items + list(itertools.islice(itertools.cycle(head), self.world_size - over))

    def iterate(self, whole: Any, start: int, offset: int = 0) -> Iterator[Item]:
        """Iterates over this rank's items from number `start` on.

        Args:
            whole: the order of all ranks, with a length and ``iter_from(position)``.
            offset: items of the order that do not belong to the ranks' shares; an earlier job had them.
        """
        count, step = len(whole), self.world_size
        over = max(0, count - offset) % step
        first = offset + self.rank + start * step
        stop = count - over if self.drop_last else count
        own = itertools.islice(whole.iter_from(min(first, stop)), 0, max(0, stop - first), step)
        if not over or self.drop_last or self.rank < over or first > count - over + self.rank:
            return own
        return itertools.chain(own, itertools.islice(whole.iter_from((self.rank - over) % count), 1))

    def select_items(self, items: list[Item]) -> list[Item]:
        """Returns this rank's items."""
        return items[self.rank :: self.world_size]


class RankSampler(Seeded, TorchDistributedSampler[Item]):
    """Base class of the samplers that yield one rank's share of an order common to all ranks."""

    @property
    def share(self) -> Share[Item]:
        """This rank's part of the whole order."""
        return Share(self.rank, self.num_replicas, self.drop_last)

    @property
    def whole(self) -> Iterable[Item]:
        """The order of all ranks together in the current epoch."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Item]:
        whole = self.whole
        if hasattr(whole, "iter_from"):  # any part of it is computed, so none of it is stored
            return self.share.iterate(whole, 0)
        order = list(whole)
        return iter(self.share.select_items(self.share.even(order, order)))


class DistributedSampler(RankSampler[int]):
    """Like ``torch.utils.data.DistributedSampler``, but in the order of a single process.

    Rank r of W gets samples r, r + W, r + 2 W, ... of an order that follows from (seed, epoch) and equals that of
    headrace's ``DataLoader(shuffle=True, seed=seed)``. The W batches of a step, one per rank, therefore hold together
    the same samples for every W, as long as W times the batch size is the same. A headrace DataLoader makes such a
    sampler itself if it knows its ranks (``distributed=True``, or ``rank`` and ``world_size``); its ``state_dict()``
    can be loaded in a job with another number of ranks.

    Args:
        dataset: any object with a length.
        num_replicas, rank: number of ranks and this process's rank. None: those of torch.distributed or torchrun; a
            single rank if there is no distributed job.
        shuffle: whether to shuffle. False: the dataset's order.
        seed: seed of the shuffle; must be the same on all ranks.
        drop_last: whether to drop the last ``len(dataset) % num_replicas`` samples of the order. False: repeat its
            first samples until all ranks have equally many.

    Raises:
        ValueError: `rank` is outside of [0, num_replicas), or only one of the two is given.
        TypeError: `seed`, `rank` or `num_replicas` is not an integer.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        world = World.of(rank, num_replicas, "num_replicas")
        number = whole_number("seed", seed)
        super().__init__(dataset, world.size, world.rank, shuffle, number, drop_last)  # type: ignore[arg-type]

    @property
    def whole(self) -> Iterable[int]:
        """The order of all ranks together in the current epoch."""
        length = len(self.dataset)  # type: ignore[arg-type]
        if not self.shuffle:
            return range(length)
        return random_order(length, self.seed, self.epoch)


class ShardedSampler(RankSampler[Any]):
    """Splits the items of another sampler or batch sampler: rank r of W gets items r, r + W, r + 2 W, ...

    The sampler must yield the same order on all ranks: give it the same seed, or a generator with the same seed.

    Args:
        sampler: yields indices or lists of indices; must have a length.
        num_replicas, rank: number of ranks and this process's rank. None: those of torch.distributed or torchrun; a
            single rank if there is no distributed job.
        drop_last: whether to drop the last ``len(sampler) % num_replicas`` items. False: repeat the first items until
            all ranks have equally many.

    Raises:
        TypeError: `sampler` has no length, or `rank` or `num_replicas` is not an integer.
        ValueError: `rank` is outside of [0, num_replicas), or only one of the two is given.
    """

    def __init__(
        self,
        sampler: Sampler[object] | Iterable[object],
        num_replicas: int | None = None,
        rank: int | None = None,
        drop_last: bool = False,
    ) -> None:
        if not hasattr(type(sampler), "__len__"):
            raise TypeError(f"{type(sampler).__qualname__} has no length: it cannot be split evenly among ranks")
        world = World.of(rank, num_replicas, "num_replicas")
        super().__init__(sampler, world.size, world.rank, shuffle=False, drop_last=drop_last)  # type: ignore[arg-type]
        self.sampler = sampler

    @property
    def whole(self) -> Iterable[object]:
        """The order of all ranks together in the current epoch: the inner sampler."""
        return self.sampler

    @property
    def iter_from(self) -> Callable[[int], Iterator[Any]]:
        """Iterates over this rank's items from a number on; AttributeError if the inner sampler has no such method."""
        if not hasattr(self.sampler, "iter_from"):
            raise AttributeError("iter_from")
        return lambda start: self.share.iterate(self.sampler, start)

    def __len__(self) -> int:
        items, ranks = len(self.sampler), self.num_replicas  # type: ignore[arg-type]
        return items // ranks if self.drop_last else -(-items // ranks)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next ``iter(sampler)``, also on the inner samplers that have ``set_epoch``."""
        super().set_epoch(epoch)
        set_epoch_of_samplers(sampler_chain(self.sampler), epoch)
