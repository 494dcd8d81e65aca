"""The number of a sample in a stream: it says where the sample begins, so no index is needed to find it again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_BLOCK = 512  # headers of a tar archive begin at its multiples
_SHARD, _TURN = 32, 56  # bits below the number of the shard, and below the turn
MOST_SHARDS, MOST_TURNS, MOST_BYTES = 1 << (_TURN - _SHARD), 127, _BLOCK << _SHARD


class StreamPosition(NamedTuple):
    """Where a sample begins.

    Attributes:
        turn: how often the epoch had started over with all shards.
        shard: number of the shard in the list of shards.
        begin: offset of the sample's first header.
    """

    turn: int
    shard: int
    begin: int

    @property
    def number(self) -> int:
        """The number, below 2**63. The random numbers of the sample follow from it."""
        return self.turn << _TURN | self.shard << _SHARD | self.begin // _BLOCK


def decode_sample_number(number: int) -> StreamPosition:
    """Returns where the sample of a number begins."""
    block = number & ((1 << _SHARD) - 1)
    return StreamPosition(number >> _TURN, (number >> _SHARD) & (MOST_SHARDS - 1), block * _BLOCK)


def shards_of(numbers: npt.NDArray[np.int64]) -> set[int]:
    """Returns the shards that hold the samples of these numbers, int64 (n,)."""
    return set(np.unique(numbers >> _SHARD & MOST_SHARDS - 1).tolist())
