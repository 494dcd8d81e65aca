"""Packs samples of known lengths into bins of one capacity: first fit and best fit, the longest samples first."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


def first_fit(lengths: Int64s, capacity: int, most: int) -> list[list[int]]:
    """Puts each sample into the first bin that has room for it, and opens a bin if none has.

    Takes O(n log b) time for b bins, by a tree of the largest room in each range of bins.

    Args:
        lengths: lengths of the samples in the order in which they are packed, each from 1 to `capacity`; int64 (n,).
        capacity: of a bin.
        most: largest number of samples in a bin.

    Returns:
        The bins in the order in which they were opened: positions in `lengths`, ascending.
    """
    leaves = 1 << max(0, int(len(lengths) - 1).bit_length())
    rooms = [capacity] * (2 * leaves)  # of node i: the larger of those of 2 i and 2 i + 1; bins not yet open count, too
    bins: list[list[int]] = []
    for position, length in enumerate(lengths.tolist()):
        node = 1
        while node < leaves:
            node *= 2
            if rooms[node] < length:
                node += 1
        number = node - leaves
        if number == len(bins):
            bins.append([])
        bins[number].append(position)
        rooms[node] = rooms[node] - length if len(bins[number]) < most else 0
        while node > 1:
            node //= 2
            rooms[node] = max(rooms[2 * node], rooms[2 * node + 1])
    return bins


def best_fit(lengths: Int64s, capacity: int, most: int) -> list[list[int]]:
    """Puts each sample into the bin that it leaves the least room in, the oldest of several; as `first_fit` otherwise.

    Takes O(n log b) comparisons, and moves a list of the open bins' rooms.
    """
    bins: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # (room, bin) of the bins that have room, ascending
    for position, length in enumerate(lengths.tolist()):
        at = bisect_left(rooms, (length, 0))
        if at < len(rooms):
            room, number = rooms.pop(at)
            bins[number].append(position)
        else:
            room, number = capacity, len(bins)
            bins.append([position])
        if room > length and len(bins[number]) < most:
            insort(rooms, (room - length, number))
    return bins
