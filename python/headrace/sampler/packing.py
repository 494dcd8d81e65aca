"""A batch sampler that packs samples of known lengths into bins of a token budget, for attention without padding."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from headrace._base.checks import whole_number
from headrace._base.types import State
from headrace._recipe.draws.draws import Int64Array, epoch_words
from headrace._recipe.draws.seeded_sampler import Seeded
from headrace.sampler.bins import best_fit, first_fit
from headrace.sampler.lengths import checked_lengths

_SAMPLES, _BINS = 1, 2  # stream numbers for epoch_words
_NO_LIMIT = 2**62
_METHODS: dict[str, Callable[[Int64Array, int, int], list[list[int]]]] = {
    "best_fit": best_fit,
    "first_fit": first_fit,
}


class PackingBatchSampler(Seeded, Sampler[list[int]]):
    """Yields every sample once per epoch, in batches ("bins") whose lengths add up to `max_tokens` at most.

    For models that take the samples of a batch one after another in one sequence, and keep them apart by
    ``cu_seqlens`` or position ids, as `PackingCollate` makes them: then nothing is padded, and what a bin lacks to the
    budget is all that is wasted.

    Each epoch is shuffled and cut into windows; the samples of a window are packed from long to short, and the bins of
    an epoch are shuffled. The samples of each window's emptiest bin go to the next window, so at most one bin of an
    epoch is the rest. Bins differ between epochs.

    Method: best-fit decreasing as in TRL's ``packing_strategy="bfd"``, first-fit decreasing.

    The bins depend only on the arguments and the epoch, so a loader's state resumes in the middle of one. In a
    distributed job, ``DataLoader(distributed=True)`` or ``rank=`` and ``world_size=`` share out the bins of one order:
    each rank gets equally many. As with torch's DistributedSampler, call ``set_epoch`` to get other bins in the next
    epoch; headrace's DataLoader does so itself.

    Args:
        lengths: length of every sample, integers >= 0: a sequence, array or tensor (n,). A length of 0 counts as 1.
        max_tokens: most tokens of a bin, all samples together.
        max_samples: largest number of samples in a bin; None: no limit.
        method: ``"best_fit"``: a sample goes into the bin where it leaves the least room; ``"first_fit"``: into the
            first with room, in the order in which bins were opened.
        window: number of samples that are packed together. Larger windows leave less room, and mix samples of more
            lengths.
        shuffle: whether to shuffle. False: windows of consecutive samples, and their bins in the order in which they
            were opened; the same in every epoch.
        seed: any integer; only its low 64 bits are used.
        drop_last: whether to drop the bin that is the epoch's rest.

    Attributes:
        lengths: length of every sample, int64 (n,).
        epoch: epoch of the next iterator; initially 0.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there are no samples, a length is negative, a sample is longer than `max_tokens` (the message gives
            its index), or there is no such method.
    """

    def __init__(
        self,
        lengths: npt.ArrayLike,
        max_tokens: int,
        *,
        max_samples: int | None = None,
        method: Literal["best_fit", "first_fit"] = "best_fit",
        window: int = 8192,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.max_tokens: int = whole_number("max_tokens", max_tokens, smallest=1)
        self.lengths: Int64Array = checked_lengths(lengths, self.max_tokens)
        self.max_samples: int | None = (
            None if max_samples is None else whole_number("max_samples", max_samples, smallest=1)
        )
        if method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}, not {method!r}")
        self.method: str = method
        self.window: int = whole_number("window", window, smallest=1)
        self.shuffle: bool = bool(shuffle)
        self.seed: int = whole_number("seed", seed)
        self.drop_last: bool = bool(drop_last)
        self.epoch = 0
        self._packed: tuple[int, list[Int64Array]] | None = None  # (epoch, its bins), the newest

    def __len__(self) -> int:
        """Number of bins in the current epoch; it differs between epochs."""
        return len(self._bins())

    def __iter__(self) -> Iterator[list[int]]:
        return self.iter_from(0)

    def iter_from(self, first: int) -> Iterator[list[int]]:
        """Yields the bins of the current epoch from number `first` on."""
        return map(np.ndarray.tolist, itertools.islice(self._bins(), first, None))

    def unused_share(self) -> float:
        """Returns the share of the budget that the bins of the current epoch leave empty: what fixed-size bins would
        be padded with."""
        bins = self._bins()
        used = sum(int(np.maximum(self.lengths[one], 1).sum()) for one in bins)
        return 1 - used / (len(bins) * self.max_tokens) if bins else 0.0

    def __getstate__(self) -> State:
        return {**self.__dict__, "_packed": None}

    def _bins(self) -> list[Int64Array]:
        """Returns the bins of the current epoch: int64 (n,) each, longest sample first."""
        if self._packed is None or self._packed[0] != self.epoch:
            self._packed = self.epoch, self._pack()
        return self._packed[1]

    def _pack(self) -> list[Int64Array]:
        order = self._make_order(_SAMPLES, len(self.lengths))
        bins: list[Int64Array] = []
        rest: Int64Array = np.empty(0, np.int64)
        for begin in range(0, len(order), self.window):
            made, rest = self._pack_window(np.concatenate([rest, order[begin : begin + self.window]]))
            bins += made
        if len(rest) and not self.drop_last:
            bins.append(rest)
        return [bins[number] for number in self._make_order(_BINS, len(bins))]

    def _pack_window(self, samples: Int64Array) -> tuple[list[Int64Array], Int64Array]:
        """Returns the bins of a window, without the emptiest, and the samples of that one."""
        samples = samples[np.argsort(-self.lengths[samples], kind="stable")]
        tokens = np.maximum(self.lengths[samples], 1)
        packed = _METHODS[self.method](tokens, self.max_tokens, self.max_samples or _NO_LIMIT)
        filled = [int(tokens[one].sum()) for one in packed]
        emptiest = len(filled) - 1 - int(np.argmin(filled[::-1]))  # the last of several
        rest = samples[packed.pop(emptiest)]
        return [samples[one] for one in packed], rest

    def _make_order(self, stream: int, count: int) -> Int64Array:
        if not self.shuffle:
            return np.arange(count)
        return np.argsort(epoch_words(self.seed, self.epoch, stream, count), kind="stable")
