"""The order of an epoch: which batches of which samples, and the states of the generators that it follows from."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler

from headrace.epochs.sampler_state import History, SamplerState
from headrace.randomness.draws import Occurrences
from headrace.sampler.distributed import ShardedSampler, Share
from headrace.sampler.seeded import Seeded

Int64s = npt.NDArray[np.int64]

_AT_ONCE = 65536  # items that are passed over in one go


@dataclass(frozen=True)
class RandomState:
    """The states of torch's generators from which an epoch's order follows, before anything was drawn."""

    own: tuple[torch.Tensor, ...]  # of the generators that the loader and its samplers hold
    default: torch.Tensor  # of torch's default one

    @classmethod
    def now(cls, generators: Sequence[torch.Generator]) -> RandomState:
        return cls(tuple(one.get_state() for one in generators), torch.get_rng_state())

    def restore(self, generators: Sequence[torch.Generator]) -> None:
        torch.set_rng_state(self.default)
        for generator, state in zip(generators, self.own, strict=True):
            generator.set_state(state)


def generators_of(loader_generator: torch.Generator | None, samplers: Iterable[Any]) -> tuple[torch.Generator, ...]:
    """The generators that decide the order, each once: the loader's and those that its samplers were given."""
    found: list[torch.Generator] = []
    for one in (loader_generator, *(getattr(sampler, "generator", None) for sampler in samplers)):
        if isinstance(one, torch.Generator) and all(one is not known for known in found):
            found.append(one)
    return tuple(found)


def base_seed(generator: torch.Generator | None) -> int:
    """Drawn as torch's loader draws its own at the start of an epoch, so that the same numbers follow after it."""
    device = "cpu" if generator is None else generator.device
    return int(torch.empty((), dtype=torch.int64, device=device).random_(generator=generator).item())


def names_each_once(sampler: Any, length: int) -> bool:
    """Whether it is known that an epoch of this sampler, or batch sampler, names no sample twice."""
    if type(sampler) is BatchSampler or isinstance(sampler, ShardedSampler):
        return names_each_once(sampler.sampler, length)
    if type(sampler) is SequentialSampler:
        return True
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples <= length
    return is_ours(sampler) and sampler.unique


def is_ours(sampler: Any) -> bool:
    """Whether it is one of headrace's samplers, and nobody's subclass of one."""
    return isinstance(sampler, Seeded) and type(sampler).__module__.startswith("headrace.")


@dataclass(frozen=True)
class Cut:
    """How the items of an order become the batches of one rank.

    Attributes:
        batch_size: of one rank; None: the items are batches themselves.
        drop_last: whether an incomplete batch is left out.
        share: which part of the order is this rank's.
    """

    batch_size: int | None
    drop_last: bool = False
    share: Share[Any] = field(default_factory=Share)

    @property
    def stride(self) -> int:
        """The items of a step, of all ranks together."""
        return (self.batch_size or 1) * self.share.world_size

    def batches(self, items: int) -> int:
        """How many batches `items` make for each rank."""
        steps, rest = divmod(items, self.stride)
        ranks = self.share.world_size
        return steps + self.keeps(rest // ranks if self.share.drop_last else -(-rest // ranks))

    def keeps(self, last: int) -> bool:
        """Whether a last batch of so many items is handed out."""
        return last > 0 and not (self.drop_last and self.batch_size is not None and last < self.batch_size)


@dataclass(frozen=True)
class OrderedBatch:
    """The samples of one batch: int64 (n,) each."""

    indices: Int64s
    occurrences: Int64s


class Delivered(Protocol):
    """What an order asks of the progress of its epoch."""

    @property
    def position(self) -> int:
        """Batches that are delivered."""


class EpochOrder:
    """Turns what a sampler yields into one rank's batches of (index, occurrence).

    Occurrences are counted over all ranks: a sample's augmentation does not depend on how many there are.

    Args:
        sampler: of all ranks together: its items are indices, or batches of them.
        unique: whether it is known that it names no sample twice.
        length: of the dataset.
        cut: how items become batches.
        resumed: the state of a sampler that keeps its own, to go on from.
        first: batches of the epoch before that state.

    Attributes:
        progress: of the epoch, where it is known: how many of its batches are delivered.
    """

    progress: Delivered | None = None

    def __init__(
        self,
        sampler: Iterable[Any],
        unique: bool,
        length: int,
        cut: Cut,
        resumed: SamplerState | None = None,
        first: int = 0,
    ) -> None:
        self._sampler, self._length, self._cut = sampler, length, cut
        self._head: list[Any] = []  # the first items, which may have to fill up the end
        self._occurrences = None if unique else Occurrences(length)
        before = SamplerState.before(sampler) if resumed is None else resumed
        self._begin(iter(sampler) if resumed is None else resumed.begin(sampler))
        self._batches = first
        self._history = History.of(sampler, self._iterator, first, before)
        if resumed is not None:
            self._head = list(resumed.head)
            if self._occurrences is not None and resumed.counts is not None:
                self._occurrences.restore(resumed.counts.numpy())

    def _begin(self, iterator: Iterator[Any]) -> None:
        """The next items are those of `iterator`."""
        self._iterator = iterator
        # `next` alone is called: `iter` begins some iterators anew, and itertools would call it each time.
        self._items = map(next, itertools.repeat(iterator))
        self._drawn: list[Any] = []  # items that were taken before their batch was asked for
        self._ended = False

    def __iter__(self) -> EpochOrder:
        return self

    def __next__(self) -> OrderedBatch:
        cut, share = self._cut, self._cut.share
        items = self._take(cut.stride)
        named = len(items)
        if named < cut.stride:
            items = share.even(items, self._head)
            if not cut.keeps(len(items) // share.world_size):
                raise StopIteration
        batches = self._name(items, named)
        self._batches += 1
        if self._history is not None:
            delivered = 0 if self.progress is None else self.progress.position
            self._history.note(self._batches, np.concatenate([one.indices for one in batches]), delivered)
        if cut.batch_size is None:
            return batches[share.rank]
        every = slice(share.rank, None, share.world_size)
        return OrderedBatch(batches[0].indices[every], batches[0].occurrences[every])

    def state_at(self, batches: int) -> SamplerState | None:
        """The state of the sampler behind the epoch's first `batches`; None: it keeps none."""
        if self._history is None:
            return None
        counts = None if self._occurrences is None else self._occurrences.counts
        return self._history.at(batches, self._head, counts)

    def skip(self, items: int, batches: int) -> None:
        """Passes over `items` of the order and then over `batches` of this rank, without making them.

        Raises:
            ValueError: the order ends before that.
        """
        wanted = items + batches * self._cut.stride
        passed = 0
        iter_from = getattr(self._sampler, "iter_from", None)
        if iter_from is not None and self._occurrences is None:
            passed = min(wanted, len(self._sampler))  # type: ignore[arg-type]
            self._head = list(itertools.islice(iter_from(0), self._cut.share.world_size))
            self._begin(iter_from(passed))
        while passed < wanted and (some := self._take(min(wanted - passed, _AT_ONCE))):
            passed += len(some)
            if self._occurrences is not None:
                self._name(some, len(some))
        has = self._cut.batches(max(0, passed - items))
        if has < batches:
            raise ValueError(f"the state says {batches} batches were yielded, but this epoch has only {has}")

    def draw(self) -> None:
        """Lets the sampler draw its random numbers now rather than when its first batch is asked for."""
        if not self._drawn:
            self._drawn = self._asked(1)

    def _take(self, count: int) -> list[Any]:
        drawn, self._drawn = self._drawn[:count], self._drawn[count:]
        items = drawn + self._asked(count - len(drawn))
        self._head += items[: self._cut.share.world_size - len(self._head)]
        return items

    def _asked(self, count: int) -> list[Any]:
        """Up to `count` items of the sampler."""
        try:
            return [] if self._ended else list(itertools.islice(self._items, count))
        except BaseException:
            # torch's BatchSampler, a generator, has ended then; what yields batches itself is asked again.
            self._ended = self._cut.batch_size is not None
            raise

    def _name(self, items: list[Any], named: int) -> list[OrderedBatch]:
        """Items, of which those from `named` on repeat the order's first: as batches, or as one of all of them."""
        made = []
        for number, item in enumerate(items if self._cut.batch_size is None else [items] if items else []):
            indices = self._checked(item)
            if self._occurrences is not None:
                occurrences = self._occurrences.take(indices)
            else:
                places = np.full(len(indices), number) if self._cut.batch_size is None else np.arange(len(indices))
                occurrences = np.where(places < named, 0, 1 + (places - named) // max(1, len(self._head)))
            made.append(OrderedBatch(indices, occurrences))
        return made

    def _checked(self, named: Any) -> Int64s:
        indices = _indices(named)
        if not indices.size:
            raise IndexError("the batch sampler yielded an empty batch")
        bad = indices[(indices < -self._length) | (indices >= self._length)]
        if bad.size:
            raise IndexError(f"the sampler named index {bad[0]}, out of range for a dataset of {self._length} samples")
        return np.where(indices < 0, indices + self._length, indices)


def _indices(named: Any) -> Int64s:
    """What a sampler has named, int64 (n,): an index, or some of them, of anything that Python takes as an index."""
    if isinstance(named, torch.Tensor):
        named = named.tolist()
    try:
        given = [named] if hasattr(type(named), "__index__") else list(named)
        indices = np.asarray(given or [], dtype=None if given else np.int64)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":  # bool, one-element tensors, mixed kinds
            indices = np.array([operator.index(one) for one in given], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"the sampler yielded {named!r}; an integer index or a list of them is needed") from None
    return indices.astype(np.int64)
