"""Base class of the batch samplers that cut an epoch's order into windows, and pack each into batches of a budget."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from torch.utils.data import Sampler

from headrace._base.checks import whole_number
from headrace._base.types import State
from headrace._recipe.draws.draws import Int64Array, epoch_words
from headrace._recipe.draws.seeded_sampler import Seeded

_SAMPLES, _BINS, _TURNS = 1, 2, 3  # stream numbers for epoch_words


class WindowedBatches(Seeded, Sampler[list[int]]):
    """The batches of an epoch follow from the arguments and the epoch.

    Its samples are shuffled and cut into windows, those of a window are packed by the subclass, and the batches are
    shuffled. What a window leaves over goes to the next one, so at most one batch of an epoch is the rest.

    Args:
        samples: number of samples.
        window, shuffle, seed, drop_last: see PackingBatchSampler.
    """

    def __init__(self, samples: int, window: int, *, shuffle: bool, seed: int, drop_last: bool) -> None:
        self.window: int = whole_number("window", window, smallest=1)
        self.shuffle: bool = bool(shuffle)
        self.seed: int = whole_number("seed", seed)
        self.drop_last: bool = bool(drop_last)
        self.epoch = 0
        self._samples = samples
        self._packed: tuple[int, list[Int64Array]] | None = None  # (epoch, its batches), the newest

    def _pack_window(self, samples: Int64Array, turn: float) -> tuple[list[Int64Array], Int64Array]:
        """Returns the batches of a window's samples, and those left over: one batch at most.

        Args:
            samples: indices, int64 (n,), in the order of the epoch.
            turn: a random number of the window, at least 0 and below 1; 0 without `shuffle`.
        """
        raise NotImplementedError

    def __len__(self) -> int:
        """Number of batches in the current epoch; it differs between epochs."""
        return len(self._bins())

    def __iter__(self) -> Iterator[list[int]]:
        return self.iter_from(0)

    def iter_from(self, first: int) -> Iterator[list[int]]:
        """Yields the batches of the current epoch from number `first` on."""
        return map(np.ndarray.tolist, itertools.islice(self._bins(), first, None))

    def __getstate__(self) -> State:
        return {**self.__dict__, "_packed": None}

    def _bins(self) -> list[Int64Array]:
        """Returns the batches of the current epoch: int64 (n,) each."""
        if self._packed is None or self._packed[0] != self.epoch:
            self._packed = self.epoch, self._pack()
        return self._packed[1]

    def _pack(self) -> list[Int64Array]:
        order = self._make_order(_SAMPLES, self._samples)
        begins = range(0, len(order), self.window)
        words = epoch_words(self.seed, self.epoch, _TURNS, len(begins)) if self.shuffle else np.zeros(len(begins))
        bins: list[Int64Array] = []
        rest: Int64Array = np.empty(0, np.int64)
        for begin, word in zip(begins, words.tolist(), strict=True):
            samples = np.concatenate([rest, order[begin : begin + self.window]])
            made, rest = self._pack_window(samples, word / 2.0**64)
            bins += made
        if len(rest) and not self.drop_last:
            bins.append(rest)
        return [bins[number] for number in self._make_order(_BINS, len(bins))]

    def _make_order(self, stream: int, count: int) -> Int64Array:
        if not self.shuffle:
            return np.arange(count)
        return np.argsort(epoch_words(self.seed, self.epoch, stream, count), kind="stable")
