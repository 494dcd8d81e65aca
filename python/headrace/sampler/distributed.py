"""Deals an epoch's order out to the ranks of a distributed job."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch.utils.data import Sampler
from torch.utils.data.distributed import DistributedSampler as TorchDistributedSampler

from headrace.base.whole_number import whole_number
from headrace.base.world import World
from headrace.sampler.plain import permutation
from headrace.sampler.seeded import Seeded, chain_of, tell

Item = TypeVar("Item")


@dataclass(frozen=True)
class Share(Generic[Item]):
    """One rank's part of an order: its items rank, rank + world_size, rank + 2 world_size, ...

    Attributes:
        drop_last: whether the items that do not go round are left out; else the order's first ones follow them.
    """

    rank: int = 0
    world_size: int = 1
    drop_last: bool = False

    def even(self, items: list[Item], head: list[Item]) -> list[Item]:
        """The end of an order made to go round: shortened, or with items of its `head`, again and again."""
        over = len(items) % self.world_size
        if not over:
            return items
        if self.drop_last:
            return items[: len(items) - over]
        return items + list(itertools.islice(itertools.cycle(head), self.world_size - over))

    def of(self, items: list[Item]) -> list[Item]:
        """This rank's."""
        return items[self.rank :: self.world_size]


class DealingSampler(Seeded, TorchDistributedSampler[Item]):
    """Gives a rank its part of a whole order."""

    @property
    def share(self) -> Share[Item]:
        """Which part of the whole order is this rank's."""
        return Share(self.rank, self.num_replicas, self.drop_last)

    @property
    def whole(self) -> Iterable[Item]:
        """The order of all ranks together, of the epoch at hand."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Item]:
        order = list(self.whole)
        return iter(self.share.of(self.share.even(order, order)))


class DistributedSampler(DealingSampler[int]):
    """As ``torch.utils.data.DistributedSampler``, in the order that one process alone would have.

    Rank r of W is given samples r, r + W, r + 2 W, ... of an order that follows from (seed, epoch) and is that of
    headrace's ``DataLoader(shuffle=True, seed=seed)``. So W batches, one of each rank, are together the same samples
    for every W as long as their sizes sum up to the same number. A headrace DataLoader makes one of these by itself
    where torch.distributed is initialised; its ``state_dict()`` goes on with another number of ranks.

    Args:
        dataset: anything that has a length.
        num_replicas, rank: None: those of torch.distributed, or of torchrun; without a job, one rank.
        shuffle: False: samples in the dataset's order.
        seed: the same on all ranks.
        drop_last: leaves out the last ``len(dataset) % num_replicas`` samples of the order; else its first ones are
            repeated until all ranks have as many.

    Raises:
        ValueError: a rank outside the world. TypeError: `seed` is no whole number.
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
        """The order of all ranks together, of the epoch at hand."""
        length = len(self.dataset)  # type: ignore[arg-type]
        if not self.shuffle:
            return range(length)
        return permutation(length, self.seed, self.epoch)


class ShardedSampler(DealingSampler[Any]):
    """Deals out what another sampler, or batch sampler, yields: rank r of W is given items r, r + W, r + 2 W, ...

    All ranks must be given the same order: samplers of the same seed, or with generators of the same.

    Args:
        sampler: yields indices, or lists of them; has a length.
        num_replicas, rank: None: those of torch.distributed, or of torchrun; without a job, one rank.
        drop_last: leaves out the items that do not go round; else the first ones are repeated.

    Raises:
        TypeError: the sampler has no length. ValueError: a rank outside the world.
    """

    def __init__(
        self,
        sampler: Sampler[Any] | Iterable[Any],
        num_replicas: int | None = None,
        rank: int | None = None,
        drop_last: bool = False,
    ) -> None:
        if not hasattr(type(sampler), "__len__"):
            raise TypeError(f"{type(sampler).__qualname__} has no length: it cannot be dealt out evenly")
        world = World.of(rank, num_replicas, "num_replicas")
        super().__init__(sampler, world.size, world.rank, shuffle=False, drop_last=drop_last)  # type: ignore[arg-type]
        self.sampler = sampler

    @property
    def whole(self) -> Iterable[Any]:
        """The order of all ranks together, of the epoch at hand: the sampler that is dealt out."""
        return self.sampler

    def __len__(self) -> int:
        items, ranks = len(self.sampler), self.num_replicas  # type: ignore[arg-type]
        return items // ranks if self.drop_last else -(-items // ranks)

    def set_epoch(self, epoch: int) -> None:
        """The next ``iter(sampler)`` is of this epoch; what is dealt out is told, where it can be."""
        super().set_epoch(epoch)
        tell(chain_of(self.sampler), epoch)
