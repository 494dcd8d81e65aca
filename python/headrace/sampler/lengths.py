"""Batches of samples of similar length: of a fixed size, or as many as a budget of tokens holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Sampler

from headrace.base.whole_number import whole_number
from headrace.randomness.draws import Int64Array, epoch_words
from headrace.sampler.seeded import Seeded

_SAMPLES, _PIVOTS, _BATCHES = 1, 2, 3  # streams of epoch_words
_NO_LIMIT = 2**62


class LengthBucketBatchSampler(Seeded, Sampler[list[int]]):
    """Names every sample once an epoch, in batches whose samples are of similar length.

    A batch is padded to its longest sample, so what is shorter is paid for and thrown away. Sorting all samples by
    length would waste least, and make the same batches in every epoch. So an epoch is shuffled, cut into pools of
    `pool` batches, each pool is sorted and cut into batches, and the batches are shuffled: batches are new in each
    epoch, and hold no more padding than the lengths in a pool of that size leave. (The sampling in pools of torchtext's
    BucketIterator and of transformers' LengthGroupedSampler, with the budget of fairseq's ``--max-tokens``.)

    Within a batch the longest sample comes first, as ``pack_padded_sequence`` wants it.

    An incomplete batch is one that ended because there were no more samples, and not because it was full: at most one
    an epoch. Which lengths it holds is drawn anew in each epoch, so that ``drop_last=True`` does not leave out the same
    samples, the shortest or the longest, in all of them. A batch is full when it has `batch_size` samples, or when the
    next sample would have made its padded size larger than `max_tokens`.

    The batches are a function of the arguments, seed and epoch alone. ``set_epoch`` says which epoch is next, as for
    torch's DistributedSampler: without it all are alike.

    Args:
        lengths: of all samples, integers of 0 or more: a sequence, array or tensor (n,). An empty sample counts as one
            of 1 in `max_tokens`.
        batch_size: the most samples of a batch.
        max_tokens: the largest padded size of a batch: its longest length times its number of samples. One of the two
            must be given; with both, a batch keeps to both.
        shuffle: False: pools of consecutive samples, their batches in order from the shortest to the longest, what the
            pools left over at the end; the same in every epoch.
        seed: any integer, of which the low 64 bits count.
        drop_last: whether the incomplete batch is left out.
        pool: how many batches are sorted together, about (and shuffled ones no more than a quarter of all); None: all,
            which makes nearly the same batches in every epoch. Larger: less padding, less random batches.

    Attributes:
        lengths: int64 (n,).
        epoch: whose batches are next; 0 at first.

    Raises:
        TypeError: an argument of the wrong type. ValueError: neither `batch_size` nor `max_tokens`, no sample, a
            negative length, or a sample that is longer than `max_tokens` (it is named).
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
        self.lengths = _checked(lengths)
        count = len(self.lengths)
        self.batch_size = None if batch_size is None else whole_number("batch_size", batch_size, smallest=1)
        self.max_tokens = None if max_tokens is None else whole_number("max_tokens", max_tokens, smallest=1)
        self.shuffle, self.drop_last = bool(shuffle), bool(drop_last)
        self.seed = whole_number("seed", seed)
        self.pool = None if pool is None else whole_number("pool", pool, smallest=1)
        self.epoch = 0
        tokens = np.maximum(self.lengths, 1)
        if self.max_tokens is not None and tokens.max() > self.max_tokens:
            first = int(np.argmax(tokens > self.max_tokens))
            raise ValueError(
                f"sample {first} is {tokens[first]} long, more than max_tokens={self.max_tokens}: raise max_tokens, or "
                f"cut or leave out the {np.count_nonzero(tokens > self.max_tokens)} samples that are longer"
            )
        self._limits = _Limits(self.batch_size or _NO_LIMIT, self.max_tokens or _NO_LIMIT)
        # Of a fixed size: exactly; of tokens: if no batch had any padding.
        least = max(-(-count // self._limits.samples), -(-int(tokens.sum()) // self._limits.tokens))
        self._pools = 1 if self.pool is None else -(-least // self.pool)
        if self.shuffle and self.pool is not None:
            self._pools = max(self._pools, min(4, least))  # one pool alone would make nearly the same batches again
        self._cut: tuple[int, list[Int64Array]] | None = None  # the newest batches, and whose they are

    def __len__(self) -> int:
        """The batches of the epoch: with `max_tokens` another number in each."""
        if self.max_tokens is None and self.batch_size is not None:
            whole, rest = divmod(len(self.lengths), self.batch_size)
            return whole + (rest > 0 and not self.drop_last)
        return len(self._batches())

    def __iter__(self) -> Iterator[list[int]]:
        return map(np.ndarray.tolist, self._batches())

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cut": None}

    def _batches(self) -> list[Int64Array]:
        """The epoch's batches: int64 (n,) each, longest sample first."""
        if self._cut is None or self._cut[0] != self.epoch:
            self._cut = self.epoch, self._made()
        return self._cut[1]

    def _made(self) -> list[Int64Array]:
        order = self._shuffled(_SAMPLES, len(self.lengths))
        batches: list[Int64Array] = []
        left: list[Int64Array] = []
        # One share for each pool, and one for what the pools leave over: where in the sorted pool that shall lie.
        shares = self._words(_PIVOTS, self._pools + 1) / 2.0**64 if self.shuffle else np.zeros(self._pools + 1)
        for pool, share in zip(np.array_split(order, self._pools), shares, strict=False):
            batches += self._take(pool, share, left)
        incomplete: list[Int64Array] = []
        batches += self._take(np.concatenate(left), shares[-1], incomplete)
        if not self.drop_last:
            batches += [one[::-1] for one in incomplete if len(one)]  # one, or none
        return [batches[number] for number in self._shuffled(_BATCHES, len(batches))]

    def _take(self, pool: Int64Array, share: float, left: list[Int64Array]) -> list[Int64Array]:
        """The full batches of a pool; what does not fill one is added to `left`."""
        if not len(pool):  # the pools left nothing over
            return []
        pool = pool[np.argsort(self.lengths[pool], kind="stable")]
        tokens = np.maximum(self.lengths[pool], 1)
        # A share of the batches, not of the samples: a batch of long samples leaves fewer of them over.
        spent = np.cumsum(1 / self._limits.room(tokens))
        spans, begin, end = self._limits.full(tokens.tolist(), int(np.searchsorted(spent, share * spent[-1])))
        left.append(pool[begin:end])
        return [pool[a:b][::-1] for a, b in spans]

    def _shuffled(self, stream: int, count: int) -> Int64Array:
        return np.argsort(self._words(stream, count), kind="stable") if self.shuffle else np.arange(count)

    def _words(self, stream: int, count: int) -> npt.NDArray[np.uint64]:
        return epoch_words(self.seed, self.epoch, stream, count)


@dataclass(frozen=True)
class _Limits:
    """What ends a batch: its samples, or its padded size."""

    samples: int
    tokens: int

    def full(self, lengths: list[int], pivot: int) -> tuple[list[tuple[int, int]], int, int]:
        """Cuts a pool into full batches.

        From both ends: what is cut from one end only leaves the shortest or the longest samples over, always.

        Args:
            lengths: ascending, 1 or more each.
            pivot: where the samples that no batch is full of shall lie, about.

        Returns:
            (begin, end) of each batch, ascending, and of what is left over.
        """
        below, begin = [], 0
        while (end := self._upwards(lengths, begin, pivot)) < pivot:
            below.append((begin, end))
            begin = end
        above, end = [], len(lengths)
        # Beyond the pivot first, then through what the way up has left below it.
        while end > begin and end - begin >= (room := int(self.room(lengths[end - 1]))):
            above.append((end - room, end))
            end -= room
        return below + above[::-1], begin, end

    def room(self, longest: Any) -> Any:
        """How many samples a batch holds whose longest has this length; of an array, for each."""
        return np.minimum(self.samples, self.tokens // longest)

    def _upwards(self, lengths: list[int], begin: int, stop: int) -> int:
        """The end of the batch that begins at `begin`: the first sample that does not fit, or `stop`."""
        low, high = begin, min(begin + self.samples, stop)  # [begin, low) fits
        while low < high:
            middle = (low + high) // 2
            if (middle + 1 - begin) * lengths[middle] <= self.tokens:
                low = middle + 1
            else:
                high = middle
        return low


def _checked(lengths: Any) -> Int64Array:
    given = lengths.numpy(force=True) if isinstance(lengths, torch.Tensor) else np.asarray(lengths)
    if given.size and (given.ndim != 1 or given.dtype.kind not in "iu"):
        raise TypeError(f"lengths must be integers, one a sample, not {given.dtype} of shape {given.shape}")
    if not given.size:
        raise ValueError("there are no lengths, so there is no sample to put into a batch")
    if given.min() < 0:
        raise ValueError(f"sample {int(np.argmin(given))} has a length of {given.min()}; a length is 0 or more")
    return given.astype(np.int64)
