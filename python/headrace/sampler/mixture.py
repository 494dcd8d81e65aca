"""The order of a mixture of datasets, in constant memory: computed from a position instead of stored."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from torch.utils.data import Sampler

from headrace._base.checks import whole_number
from headrace._base.types import State
from headrace._recipe.draws.draws import Int64Array, epoch_words
from headrace._recipe.draws.seeded_sampler import Seeded
from headrace.datasets.mixture.epoch_counts import EpochCounts
from headrace.datasets.mixture.mixture_dataset import Mixture
from headrace.sampler.permutation import TABLE, Permutation, checked_start, permutation_of

BLOCK = 4096  # samples, at least, in which the shares of the datasets are exact
_AT_ONCE = 8  # blocks that are computed at once, to amortise the overhead of numpy's calls

_BLOCKS = 4  # stream number for epoch_words of the first block; those before belong to other samplers
_WINDOW, _ROWS, _PASSES = 0, 1, 2  # stream numbers of a dataset
_SHORT = 1024  # rows of several passes through a short dataset
_STORED = 2**21  # rows of all datasets whose permutations are stored at the same time; a shorter one than 1024 always


class MixtureSampler(Seeded, Sampler[int]):
    """Yields the samples of a `Mixture`, as indices of it, in an order that depends on (seed, epoch) alone.

    An epoch is cut into blocks of about 4,096 samples. Each has the share of each dataset, exactly but for rounding,
    and is shuffled; over the epoch the numbers are those of ``mixture.counts(epoch)``. A dataset that an epoch takes
    n samples of, and that has m rows, gives n // m passes through all rows, each in an order of its own, and then the
    next n % m rows of a fixed random cycle, shuffled; the next epoch goes on in the cycle. So no row is ever more than
    one ahead of another one.

    Any part of an epoch is computed without the part before it, in less than 64 MiB for any number of samples of up to
    1,000 datasets.

    Args:
        data_source: the mixture.
        seed: any integer; only its low 64 bits are used. Rows of a dataset with a seed of its own follow that.
        shuffle: False: the datasets take turns, evenly, and the rows of each come in order; an epoch goes on where the
            one before ended.

    Attributes:
        epoch: epoch of the next iterator; initially 0.

    Raises:
        TypeError: `data_source` is not a `Mixture`, or the seed is not an integer.
    """

    unique = False

    def __init__(self, data_source: Mixture, seed: int = 0, *, shuffle: bool = True) -> None:
        if not isinstance(data_source, Mixture):
            raise TypeError(f"a MixtureSampler is for a headrace.datasets.Mixture, not {type(data_source).__name__}")
        self.data_source = data_source
        self.seed: int = whole_number("seed", seed)
        self.shuffle: bool = bool(shuffle)
        self.epoch = 0
        self._held: tuple[object, _Epoch] | None = None  # what it was made for, and the newest epoch

    def __len__(self) -> int:
        """Number of samples in the current epoch."""
        return self.data_source.counts(self.epoch).total

    def __iter__(self) -> Iterator[int]:
        return self.iter_from(0)

    def iter_from(self, start: int) -> Iterator[int]:
        """Iterates over the current epoch from position `start` on; the samples before it cost nothing.

        Args:
            start: number of samples to skip, in [0, length].

        Raises:
            TypeError: `start` is not an integer.
            ValueError: `start` is out of range.
        """
        epoch = self._current()
        first = checked_start(start, epoch.length)
        return itertools.chain.from_iterable(one.indices.tolist() for one in epoch.stretches(first, epoch.length))

    def occurrences(self, start: int, stop: int) -> Int64Array:
        """Returns how often the current epoch yields the same sample before, for those at positions [start, stop)."""
        return np.concatenate([_NONE, *(one.occurrences for one in self._current().stretches(start, stop))])

    def most_occurrences(self) -> int:
        """Returns the largest number of times that the current epoch yields one sample."""
        counts = self.data_source.counts(self.epoch)
        return max(-(-n // length) for n, length in zip(counts.samples, counts.lengths, strict=True) if length)

    def counts_before(self, stop: int) -> dict[str, int]:
        """Returns how many of the first `stop` samples of the current epoch are of each dataset, by name."""
        found = self._current().counts_before(stop)
        return dict(zip(self.data_source.names, found, strict=True))

    def describe(self) -> str:
        return self.data_source.describe()

    def _current(self) -> _Epoch:
        mixture = self.data_source
        key = self.epoch, self.seed, self.shuffle, mixture.schedule
        if self._held is None or self._held[0] != key:
            seeds = [_seed_of_rows(self.seed if own is None else own, name) for name, own in mixture.seeds.items()]
            self._held = key, _Epoch(mixture.counts(self.epoch), seeds, self.seed, self.epoch, self.shuffle)
        return self._held[1]

    def __getstate__(self) -> State:
        return {**self.__dict__, "_held": None}


_NONE: Int64Array = np.empty(0, np.int64)


class _Stretch(NamedTuple):
    """Consecutive samples: their indices, and how often the epoch has yielded each before, int64 (n,)."""

    indices: Int64Array
    occurrences: Int64Array


class _Epoch:
    """One epoch of a mixture."""

    def __init__(self, counts: EpochCounts, seeds: list[int], seed: int, epoch: int, shuffle: bool) -> None:
        self._counts, self._seed, self._epoch, self._shuffle = counts, seed, epoch, shuffle
        self.length = counts.total
        self._blocks = max(1, self.length // max(BLOCK, 4 * len(seeds)))
        begins = [0, *itertools.accumulate(counts.lengths)]
        table = min(TABLE, max(1024, _STORED // len(seeds)))
        self._rows = [
            _Rows(begin, length, taken, earlier, own, epoch, table if shuffle else -1)
            for begin, length, taken, earlier, own in zip(
                begins, counts.lengths, counts.samples, counts.earlier, seeds, strict=False
            )
        ]
        self._held: dict[int, _Stretch] = {}  # the two newest, by number

    def stretches(self, start: int, stop: int) -> Iterator[_Stretch]:
        """Yields the samples at positions [start, stop)."""
        number = self._number(start) // _AT_ONCE
        begin = sum(self._taken(number * _AT_ONCE))
        while begin < stop:
            stretch = self._stretch(number)
            part = slice(max(0, start - begin), stop - begin)
            yield _Stretch(stretch.indices[part], stretch.occurrences[part])
            begin += len(stretch.indices)
            number += 1

    def counts_before(self, stop: int) -> list[int]:
        """Returns how many of the first samples are of each dataset."""
        number = self._number(stop)
        taken = self._taken(number)
        inside = self._sources(number)[: stop - sum(taken)]
        return [n + int(more) for n, more in zip(taken, np.bincount(inside, minlength=len(taken)), strict=True)]

    def _taken(self, number: int) -> list[int]:
        """Returns how many samples of each dataset are in the blocks before this one."""
        return [n * number // self._blocks for n in self._counts.samples]

    def _number(self, position: int) -> int:
        """Returns the number of the block that a position is in; that after the last one for the end."""
        if position >= self.length:
            return self._blocks
        number = position * self._blocks // self.length  # begins no later than the position
        while sum(self._taken(number + 1)) <= position:
            number += 1
        return number

    def _sources(self, number: int) -> Int64Array:
        """Returns the datasets of the samples of a block, int64 (n,)."""
        if number >= self._blocks:
            return _NONE
        each = np.subtract(self._taken(number + 1), self._taken(number))
        sources = np.repeat(np.arange(len(each)), each)
        if self._shuffle:
            return sources[
                np.argsort(epoch_words(self._seed, self._epoch, _BLOCKS + number, len(sources)), kind="stable")
            ]
        turns = np.concatenate([(np.arange(count) + 0.5) / count for count in each.tolist()])
        return sources[np.argsort(turns, kind="stable")]

    def _stretch(self, number: int) -> _Stretch:
        """Returns the samples of some blocks. Those that are drawn and those that are counted are a few apart."""
        if number not in self._held:
            if len(self._held) > 1:
                del self._held[next(iter(self._held))]
            self._held[number] = self._make_stretch(number)
        return self._held[number]

    def _make_stretch(self, number: int) -> _Stretch:
        first, last = number * _AT_ONCE, min((number + 1) * _AT_ONCE, self._blocks)
        sources = np.concatenate([self._sources(one) for one in range(first, last)])
        made = _Stretch(np.empty_like(sources), np.empty_like(sources))
        by_source = np.argsort(sources, kind="stable")
        end = 0
        for rows, begun, ended in zip(self._rows, self._taken(first), self._taken(last), strict=True):
            if ended == begun:
                continue
            places = by_source[end : end + ended - begun]
            made.indices[places], made.occurrences[places] = rows.at(begun, ended)
            end += ended - begun
        return made


class _Rows:
    """The rows of one dataset in an epoch, in the order in which it yields them.

    Args:
        begin: index of the first row in the mixture.
        length: number of rows.
        taken: number of samples in the epoch.
        earlier: number of rows that earlier epochs took after whole passes.
        table: up to this length permutations are stored; -1: rows are in order.
    """

    def __init__(self, begin: int, length: int, taken: int, earlier: int, seed: int, epoch: int, table: int) -> None:
        self._begin, self._length, self._earlier = begin, length, earlier
        self._passes, self._left = divmod(taken, length) if length else (0, 0)
        self._seed, self._epoch, self._table = seed, epoch, table
        self._together = max(1, _SHORT // length) if length else 1  # passes that are drawn at once
        self._short: tuple[int, Int64Array] | None = None  # number of such passes, and their rows; the newest
        self._held: dict[int, tuple[int, Permutation]] = {}  # by kind

    def at(self, first: int, last: int) -> tuple[Int64Array, Int64Array]:
        """Returns the indices of the samples with these numbers in the epoch, and their passes, int64 (n,) each."""
        passes, within = np.divmod(np.arange(first, last), self._length)
        groups = passes // self._together
        rows = np.empty_like(within)
        begin = 0
        whole = min(last, self._passes * self._length) - first
        while begin < whole:
            group = int(groups[begin])
            end = min(whole, int(np.searchsorted(groups, group, side="right")))
            if self._table < 0:
                rows[begin:end] = within[begin:end]
            elif self._together == 1:
                rows[begin:end] = self._permute(_PASSES + group, self._length, self._epoch, within[begin:end])
            else:
                each = passes[begin:end] - group * self._together
                rows[begin:end] = self._short_passes(group)[each, within[begin:end]]
            begin = end
        if begin < len(rows):
            places = self._permute(_WINDOW, self._left, self._epoch, within[begin:])
            rows[begin:] = self._permute(_ROWS, self._length, 0, (places + self._earlier) % self._length)
        return rows + self._begin, passes

    def _short_passes(self, group: int) -> Int64Array:
        """Returns the rows of several passes, int64 (passes, length)."""
        if self._short is None or self._short[0] != group:
            words = epoch_words(self._seed, self._epoch, _PASSES + group, self._together * self._length)
            self._short = group, np.argsort(words.reshape(self._together, self._length), axis=1, kind="stable")
        return self._short[1]

    def _permute(self, stream: int, length: int, epoch: int, places: Int64Array) -> Int64Array:
        if self._table < 0:
            return places
        kind = min(stream, _PASSES)
        held = self._held.get(kind)
        if held is None or held[0] != stream:
            held = self._held[kind] = stream, permutation_of(length, self._seed, epoch, stream, self._table)
        return held[1].at(places)


def _seed_of_rows(seed: int, name: str) -> int:
    """Returns the seed of a dataset's rows: those of two datasets, and the blocks, are independent."""
    return int.from_bytes(hashlib.sha256(f"{seed % 2**64} {name}".encode()).digest()[:8], "little")
