"""Which shards, and which of their samples, a rank reads in an epoch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from headrace._recipe.draws.draws import epoch_seed
from headrace.datasets.tar_stream.sample_number import MOST_TURNS

_MASK = (1 << 64) - 1


class Segment(NamedTuple):
    """Samples of a shard, in its order.

    Attributes:
        turn, shard: as in StreamPosition.
        skip: samples of the shard before them, which another rank delivers.
        take: their number; None: all that follow.
    """

    turn: int
    shard: int
    skip: int = 0
    take: int | None = None


@dataclass(frozen=True)
class Plan:
    """The shards of an epoch, shared among ranks or workers.

    Attributes:
        shards: number of shards.
        part: number of this rank and number of ranks.
        quota: number of samples of this rank; None: those of its shards.
        each: number of samples of each shard; None: unknown.
        shuffle: whether the shards come in an order that is drawn.
    """

    shards: int
    part: tuple[int, int] = (0, 1)
    quota: int | None = None
    each: tuple[int, ...] | None = None
    shuffle: bool = False

    @classmethod
    def of_rank(
        cls, shards: int, part: tuple[int, int], total: int | None, each: tuple[int, ...] | None, shuffle: bool
    ) -> Plan:
        """Returns the plan of a rank. All ranks have equal numbers of samples.

        Args:
            total: number of samples of an epoch of all ranks together; None: unknown, or the sum of `each`.

        Raises:
            ValueError: the ranks would have different numbers of samples.
        """
        ranks = part[1]
        total = total if each is None else sum(each)
        if ranks > 1 and total is None:
            raise ValueError(
                f"{ranks} ranks read different shards, and would have different numbers of batches: give length=, the "
                "number of samples of an epoch, or the list of the numbers of samples of each shard"
            )
        if ranks > shards and each is None:
            raise ValueError(
                f"{ranks} ranks cannot share {shards} shards whole: give length= as the list of the numbers of samples "
                "of each shard"
            )
        return cls(shards, part, None if total is None else -(-total // ranks), each, shuffle)

    def segments(self, seed: int, epoch: int) -> Iterator[Segment]:
        """Yields what this rank reads; without end if the epoch is longer than what the shards hold."""
        if self.each is not None:
            yield from self._cut_samples(self.each, self._order_of_shards(seed, epoch, 0))
            return
        rank, ranks = self.part
        for turn in range(1 if self.quota is None else MOST_TURNS + 1):
            for shard in self._order_of_shards(seed, epoch, turn)[rank::ranks]:
                yield Segment(turn, shard)
        if self.quota is not None:
            raise ValueError(
                f"length= asks for {self.quota} samples a rank, and its shards do not hold them in {MOST_TURNS + 1} "
                "turns: give the number of samples of an epoch"
            )

    def _cut_samples(self, each: Sequence[int], order: list[int]) -> Iterator[Segment]:
        """Cuts the samples of all shards, in order, in equal parts; the last part is filled up with the first samples,
        as torch's DistributedSampler does."""
        left, begin = self.quota or 0, self.part[0] * (self.quota or 0)
        for turn in itertools.count():
            for shard in order if left else ():
                count = each[shard]
                if begin >= count:
                    begin -= count
                    continue
                take = min(count - begin, left)
                yield Segment(turn, shard, begin, take)
                begin, left = 0, left - take
                if left == 0:
                    return
            if left == 0:
                return

    def _order_of_shards(self, seed: int, epoch: int, turn: int) -> list[int]:
        if not self.shuffle:
            return list(range(self.shards))
        generator = torch.Generator("cpu").manual_seed((epoch_seed(seed, epoch) + turn) % 2**63)
        order: list[int] = torch.randperm(self.shards, generator=generator, device="cpu").tolist()
        return order


def pick(seed: int, epoch: int, rank: int, count: int, among: int) -> int:
    """Returns the position in a buffer of `among` samples of the one that is delivered after `count` others.

    SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014) of a counter, so the
    state of the shuffle is a count.
    """
    word = (epoch_seed(seed, epoch) * 0x9E3779B97F4A7C15 + rank * 0xD1B54A32D192ED03 + count) & _MASK
    word = (word + 0x9E3779B97F4A7C15) & _MASK
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & _MASK
    return (word ^ word >> 31) % among
