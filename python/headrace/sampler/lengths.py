"""A batch sampler that groups samples of similar length, in batches of a fixed size or within a token budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Sampler

from headrace._base.checks import whole_number
from headrace._base.types import State
from headrace._recipe.draws.draws import Int64Array, epoch_words
from headrace._recipe.draws.seeded_sampler import Seeded

_SAMPLES, _PIVOTS, _BATCHES = 1, 2, 3  # stream numbers for epoch_words
_NO_LIMIT = 2**62


class LengthBucketBatchSampler(Seeded, Sampler[list[int]]):
    """Yields every sample once per epoch, in batches of samples of similar length.

    A batch is padded to its longest sample, and padding wastes memory and computation. Sorting all samples by length
    would waste least, but would make the same batches in every epoch. Instead, each epoch is shuffled and cut into
    pools of about `pool` batches; each pool is sorted and cut into batches; the batches are shuffled. The batches
    differ between epochs, and their padding is limited by the range of lengths within a pool.

    Method: pools as in torchtext's BucketIterator and transformers' LengthGroupedSampler, with the token budget of
    fairseq's ``--max-tokens``.

    A batch is full if it has `batch_size` samples, or if one more sample would make its padded size exceed
    `max_tokens`. At most one batch per epoch is incomplete. The lengths in it are drawn again in each epoch, so that
    ``drop_last=True`` does not always drop the shortest or the longest samples. Within a batch the longest sample comes
    first, as ``pack_padded_sequence`` expects.

    The batches depend only on the arguments and the epoch. As with torch's DistributedSampler, call ``set_epoch`` to
    get other batches in the next epoch; headrace's DataLoader does so itself.

    Args:
        lengths: length of every sample, integers >= 0: a sequence, array or tensor (n,). For `max_tokens`, a length of
            0 counts as 1.
        batch_size: largest number of samples in a batch.
        max_tokens: largest padded size of a batch: its longest length times its number of samples. At least one of
            `batch_size` and `max_tokens` must be given; if both are, both limits hold.
        shuffle: whether to shuffle. False: pools of consecutive samples, the batches of a pool ordered from short to
            long, the samples left over by the pools last; the same in every epoch.
        seed: any integer; only its low 64 bits are used.
        drop_last: whether to drop the incomplete batch.
        pool: approximate number of batches that are sorted together; with `shuffle`, at most a quarter of all batches.
            Larger pools mean less padding and less random batches. None: all batches, which makes nearly the same
            batches in every epoch.

    Attributes:
        lengths: length of every sample, int64 (n,).
        epoch: epoch of the next iterator; initially 0.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: neither `batch_size` nor `max_tokens` is given, there are no samples, a length is negative, or a
            sample is longer than `max_tokens` (the message gives its index).
    """

    def __init__(
        self,
        lengths: npt.ArrayLike,
        batch_size: int | None = None,
        max_tokens: int | None = None,
        *,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        pool: int | None = 100,
    ) -> None:
        if batch_size is None and max_tokens is None:
            raise ValueError("give batch_size, max_tokens, or both: one of them must end a batch")
        self.max_tokens: int | None = None if max_tokens is None else whole_number("max_tokens", max_tokens, smallest=1)
        self.lengths: Int64Array = checked_lengths(lengths, self.max_tokens)
        count = len(self.lengths)
        self.batch_size: int | None = None if batch_size is None else whole_number("batch_size", batch_size, smallest=1)
        self.shuffle: bool = bool(shuffle)
        self.drop_last: bool = bool(drop_last)
        self.seed: int = whole_number("seed", seed)
        self.pool: int | None = None if pool is None else whole_number("pool", pool, smallest=1)
        self.epoch = 0
        tokens = np.maximum(self.lengths, 1)
        self._limits = _Limits(self.batch_size or _NO_LIMIT, self.max_tokens or _NO_LIMIT)
        # Lower bound on the number of batches: exact for `batch_size`, for `max_tokens` exact without any padding.
        least = max(-(-count // self._limits.samples), -(-int(tokens.sum()) // self._limits.tokens))
        self._pools = 1 if self.pool is None else -(-least // self.pool)
        if self.shuffle and self.pool is not None:
            self._pools = max(self._pools, min(4, least))  # a single pool would make nearly the same batches each epoch
        self._cut: tuple[int, list[Int64Array]] | None = None  # (epoch, its batches), the newest

    def __len__(self) -> int:
        """Number of batches in the current epoch; with `max_tokens` it differs between epochs."""
        if self.max_tokens is None and self.batch_size is not None:
            whole, rest = divmod(len(self.lengths), self.batch_size)
            return whole + (rest > 0 and not self.drop_last)
        return len(self._batches())

    def __iter__(self) -> Iterator[list[int]]:
        return map(np.ndarray.tolist, self._batches())

    def __getstate__(self) -> State:
        return {**self.__dict__, "_cut": None}

    def _batches(self) -> list[Int64Array]:
        """Returns the batches of the current epoch: int64 (n,) each, longest sample first."""
        if self._cut is None or self._cut[0] != self.epoch:
            self._cut = self.epoch, self._make_batches()
        return self._cut[1]

    def _make_batches(self) -> list[Int64Array]:
        order = self._make_order(_SAMPLES, len(self.lengths))
        batches: list[Int64Array] = []
        left: list[Int64Array] = []
        # One share for each pool, and one for all left-over samples together: the relative position, in the sorted
        # pool, of the samples that are left over.
        shares = self._random_words(_PIVOTS, self._pools + 1) / 2.0**64 if self.shuffle else np.zeros(self._pools + 1)
        for pool, share in zip(np.array_split(order, self._pools), shares, strict=False):
            batches += self._take_full_batches(pool, share, left)
        incomplete: list[Int64Array] = []
        batches += self._take_full_batches(np.concatenate(left), shares[-1], incomplete)
        if not self.drop_last:
            batches += [one[::-1] for one in incomplete if len(one)]  # one batch or none
        return [batches[number] for number in self._make_order(_BATCHES, len(batches))]

    def _take_full_batches(self, pool: Int64Array, share: float, left: list[Int64Array]) -> list[Int64Array]:
        """Returns the full batches of a pool; adds the samples left over to `left`."""
        if not len(pool):  # no pool left any samples over
            return []
        pool = pool[np.argsort(self.lengths[pool], kind="stable")]
        tokens = np.maximum(self.lengths[pool], 1)
        # `share` is measured in batches, not in samples: with `max_tokens`, batches of long samples hold fewer of them.
        spent = np.cumsum(1 / self._limits.room(tokens))
        spans, begin, end = self._limits.full(tokens.tolist(), int(np.searchsorted(spent, share * spent[-1])))
        left.append(pool[begin:end])
        return [pool[a:b][::-1] for a, b in spans]

    def _make_order(self, stream: int, count: int) -> Int64Array:
        return np.argsort(self._random_words(stream, count), kind="stable") if self.shuffle else np.arange(count)

    def _random_words(self, stream: int, count: int) -> npt.NDArray[np.uint64]:
        return epoch_words(self.seed, self.epoch, stream, count)


@dataclass(frozen=True)
class _Limits:
    """The limits of a batch: its number of samples, and its padded size in tokens."""

    samples: int
    tokens: int

    def full(self, lengths: list[int], pivot: int) -> tuple[list[tuple[int, int]], int, int]:
        """Cuts a pool into full batches.

        Cuts from both ends towards `pivot`: cutting from one end would always leave over the shortest or the longest
        samples.

        Args:
            lengths: lengths of the pool's samples, ascending, each >= 1.
            pivot: approximate index of the samples to leave over.

        Returns:
            (begin, end) of each batch, ascending; then begin and end of the samples left over.
        """
        below, begin = [], 0
        while (end := self._upwards(lengths, begin, pivot)) < pivot:
            below.append((begin, end))
            begin = end
        above, end = [], len(lengths)
        # Downwards from the top: first above the pivot, then through the samples that are left below it.
        while end > begin and end - begin >= (room := int(self.room(lengths[end - 1]))):
            above.append((end - room, end))
            end -= room
        return below + above[::-1], begin, end

    def room(self, longest: int | Int64Array) -> Int64Array | np.int64:
        """Returns the capacity, in samples, of a batch whose longest sample has this length; elementwise for arrays."""
        return np.minimum(self.samples, self.tokens // longest)

    def _upwards(self, lengths: list[int], begin: int, stop: int) -> int:
        """Returns the end of the batch that begins at `begin`: the first sample that does not fit, or `stop`."""
        low, high = begin, min(begin + self.samples, stop)  # [begin, low) fits
        while low < high:
            middle = (low + high) // 2
            if (middle + 1 - begin) * lengths[middle] <= self.tokens:
                low = middle + 1
            else:
                high = middle
        return low


def checked_lengths(lengths: object, max_tokens: int | None = None) -> Int64Array:
    """Returns the lengths of samples, int64 (n,).

    Args:
        lengths: integers, a sequence, array or tensor (n,).
        max_tokens: the largest that a length may be; None: there is no limit.

    Raises:
        TypeError: they are not integers of one dimension.
        ValueError: there are none, or one is negative or too large; the message gives its index.
    """
    given = lengths.numpy(force=True) if isinstance(lengths, torch.Tensor) else np.asarray(lengths)
    if given.size and (given.ndim != 1 or given.dtype.kind not in "iu"):
        raise TypeError(f"lengths must be integers, one a sample, not {given.dtype} of shape {given.shape}")
    if not given.size:
        raise ValueError("lengths is empty: there are no samples")
    if given.min() < 0:
        raise ValueError(f"sample {int(np.argmin(given))} has a length of {given.min()}; a length is 0 or more")
    if max_tokens is not None and (over := np.count_nonzero(given > max_tokens)):
        first = int(np.argmax(given > max_tokens))
        raise ValueError(
            f"sample {first} is {given[first]} long, more than max_tokens={max_tokens}: raise max_tokens, or "
            f"cut or leave out the {over} samples that are longer"
        )
    return given.astype(np.int64)
