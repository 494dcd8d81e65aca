"""The order of an epoch: the samples of each batch."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
from torch.utils.data import BatchSampler

from headrace._loading.epoch.planned_occurrences import PlannedOccurrences
from headrace._loading.epoch.sampler_items import Naming, as_indices
from headrace._loading.epoch.sampler_kinds import draws_at_once
from headrace._loading.epoch.sampler_state import History, SamplerState
from headrace._recipe.draws.draws import Occurrences
from headrace._recipe.draws.python_randomness import generators_held
from headrace.sampler.distributed import Share

Int64s = npt.NDArray[np.int64]

_NONE: Int64s = np.empty(0, dtype=np.int64)
_AT_ONCE = 65536  # items that `skip` draws at once


@dataclass(frozen=True)
class Cut:
    """How the items of an order become the batches of one rank.

    Attributes:
        batch_size: batch size of one rank. None: the items are batches themselves.
        drop_last: whether to drop an incomplete batch.
        share: this rank's part of the order.
        of_rank: rank and number of ranks where the order is this rank's alone.
        by: torch's BatchSampler that cuts them, if one does. A program may change its batch size during an epoch.
    """

    batch_size: int | None
    drop_last: bool = False
    share: Share[object] = field(default_factory=Share)
    of_rank: tuple[int, int] = (0, 1)
    by: BatchSampler | None = field(default=None, compare=False, repr=False)

    def now(self, *, first: bool) -> Cut:
        """Returns the cut of the next batch. torch reads the batch size again with each; with drop_last, only once.

        Args:
            first: whether it is that of the epoch's first batch.
        """
        if self.by is None or self.share.world_size > 1 or (self.drop_last and not first):
            return self
        size, drops = self.by.batch_size, bool(self.by.drop_last) if first else self.drop_last
        if (size, drops) == (self.batch_size, self.drop_last) or type(size) is not int or size < 1:
            return self
        return replace(self, batch_size=size, drop_last=drops)

    @property
    def stride(self) -> int:
        """Number of items of one step, of all ranks together."""
        return (self.batch_size or 1) * self.share.world_size

    def batches(self, items: int) -> int:
        """Returns the number of batches that `items` make for each rank."""
        steps, rest = divmod(items, self.stride)
        ranks = self.share.world_size
        return steps + self.keeps(rest // ranks if self.share.drop_last else -(-rest // ranks))

    def keeps(self, last: int) -> bool:
        """Whether a last batch of `last` items is delivered."""
        return last > 0 and not (self.drop_last and self.batch_size is not None and last < self.batch_size)


@dataclass(frozen=True)
class OrderedBatch:
    """The samples of one batch, int64 (n,): dataset indices, and how often the epoch yielded each one before.

    Attributes:
        asked: what torch would pass to the dataset.
        is_other: whether only torch's way makes the batch: there are no indices.
        from_end: whether an index counted from the end.
        beyond: what is wrong with an index of a sample that torch's workers do not have; "" without one.
    """

    indices: Int64s
    occurrences: Int64s
    asked: object = None
    is_other: bool = False
    from_end: bool = False
    beyond: str = ""


class Delivered(Protocol):
    """The part of an epoch's progress that its order reads."""

    @property
    def position(self) -> int:
        """Number of batches delivered so far."""


@dataclass(frozen=True)
class _Step:
    """Items of the sampler for one batch of each rank.

    Attributes:
        items: those of all ranks; those from position `named` on repeat the order's first items.
        state: the sampler's state after them; None if it has none.
    """

    items: list[object]
    named: int
    state: SamplerState | None


class EpochOrder:
    """Turns the items of a sampler into one rank's batches of (index, occurrence).

    Occurrences are counted over all ranks, so that a sample's augmentation does not depend on their number.

    The sampler is the caller's code, and may draw from generators that the training loop draws from, too. So its items
    are taken when torch's loader takes them: those of the first `ahead` batches by ``read(0)``, those of one batch more
    with each batch that is handed out. With `ahead` 0 they are taken when a batch is requested.

    Args:
        sampler: yields the order of all ranks together: indices, or batches of indices.
        unique: whether the sampler is known to yield no sample twice.
        length: number of samples in the dataset.
        cut: how items become batches.
        resumed: state to resume from, for a sampler with ``state_dict``. None: from the beginning.
        first: number of the epoch's batches before those that this order yields, skipped ones included.
        naming: how its items are read.
        ahead: number of batches that the sampler is read ahead.
        iterator: what ``iter(sampler)`` returned. None: it is called with the first item, as torch's BatchSampler does.
        untouched: the sampler's state before that call.

    Attributes:
        sampler, ahead: as above.
        progress: the epoch's progress; None if it is unknown.
        before: called once, before the first item is taken.
        asked: whether an item was asked for.
    """

    progress: Delivered | None = None
    before: Callable[[], None] | None = None

    def __init__(
        self,
        sampler: Iterable[object],
        unique: bool,
        length: int,
        cut: Cut,
        resumed: SamplerState | None = None,
        first: int = 0,
        naming: Naming = Naming(),  # noqa: B008 - immutable
        *,
        ahead: int = 0,
        iterator: Iterator[object] | None = None,
        untouched: SamplerState | None = None,
    ) -> None:
        self.sampler, self.ahead = sampler, ahead
        self._length, self._cut, self._naming = length, cut, naming
        self._head: list[object] = []  # the first items, which may be repeated to fill the ranks' last batches
        self._planned = PlannedOccurrences.of(sampler, Share())
        self._occurrences = None if unique or self._planned is not None else Occurrences(length)
        self._at_once = draws_at_once(sampler)
        self._reads = self._taken = 0  # batches that torch's loader would have read by now, and those read here
        self._cuts: deque[Cut] = deque()  # of batches that torch's loader would have read
        self._steps: deque[_Step] = deque()  # read, and not requested yet
        self._drawn: list[object] = []  # items taken before their batch was read
        self._ended = False  # whether the sampler must not be asked again
        self._over = False  # whether it had no more items
        self._history: History | None = None
        self._state_before = untouched if resumed is None else resumed
        self._batches = self._first = first
        self._iterator: Iterator[object] | None = None
        self.asked = False
        if resumed is not None:
            iterator = resumed.begin(sampler)
            self._head = list(resumed.head)
            if self._occurrences is not None and resumed.counts is not None:
                self._occurrences.restore(resumed.counts.numpy())
        if iterator is not None:
            self._begin(iterator)

    def _begin(self, iterator: Iterator[object]) -> None:
        """Takes the next items from `iterator`."""
        self._iterator = iterator
        # Calls only `next`: `iter`, which itertools would call each time, restarts some iterators.
        self._items = map(next, itertools.repeat(iterator))
        self._drawn, self._ended, self._over = [], False, False
        self._history = History.of(self.sampler, iterator, self._first, self._state_before)

    def __iter__(self) -> EpochOrder:
        return self

    def __next__(self) -> OrderedBatch:
        cut, share = self._cut, self._cut.share
        if not self._steps:
            self._read()
        if not self._steps:
            raise StopIteration
        step = self._steps.popleft()
        batches = self._name_batches(step.items, step.named)
        self._batches += 1
        if self._history is not None:
            delivered = 0 if self.progress is None else self.progress.position
            named = np.concatenate([one.indices for one in batches])
            self._history.note(self._batches, step.state, named, delivered)
        if cut.batch_size is None:
            return batches[share.rank]
        if share.world_size == 1:
            return batches[0]
        every = slice(share.rank, None, share.world_size)
        return OrderedBatch(batches[0].indices[every], batches[0].occurrences[every])

    @property
    def ready(self) -> bool:
        """Whether a batch may be requested without reading the sampler further than torch's loader would by now."""
        if self._at_once and self.ahead > 0:  # further once a batch is awaited: only the items' cut can change
            return self._taken < self._reads or self._reads > self.ahead
        return self.ahead == 0 or bool(self._steps)

    @property
    def waiting(self) -> int:
        """Number of batches that were read and not requested yet."""
        return len(self._steps)

    @property
    def ended(self) -> bool:
        """Whether it is known that no batch follows."""
        return self._over and not self._steps

    def is_behind(self, delivered: int) -> bool:
        """Whether `read` would ask the sampler, or how its items are cut."""
        return self.ahead > 0 and self._reads < self.ahead + delivered

    def read(self, delivered: int) -> None:
        """Reads the sampler as far as torch's loader has read it, where its processes make the batches.

        Args:
            delivered: number of this order's batches that have come out of the loader.

        Raises:
            Exception: the sampler raised it. It counts as a batch read, as in torch.
        """
        while self.is_behind(delivered):
            self._reads += 1
            if not self._at_once:
                self._read()
            elif self._reads > self._taken:
                self._cuts.append(self._next_cut())

    def _next_cut(self) -> Cut:
        last = self._cuts[-1] if self._cuts else self._cut
        return last.now(first=self._iterator is None and not self._cuts and not self._taken)

    def _read(self) -> None:
        """Reads the items of one batch of each rank; nothing at the end."""
        cut = self._cut = self._cuts.popleft() if self._cuts else self._next_cut()
        self._taken += 1
        share = cut.share
        items = self._take_items(cut.stride)
        named = len(items)
        if named < cut.stride:
            items = share.even(items, self._head)
            if not cut.keeps(len(items) // share.world_size):
                self._over, self._ended = True, cut.batch_size is not None
                return
        state = None
        if self._history is not None and self._iterator is not None:
            state = SamplerState.of(self.sampler, self._iterator)
        self._steps.append(_Step(items, named, state))

    def state_at(self, batches: int) -> SamplerState | None:
        """Returns the sampler's state after the epoch's first `batches`; None if it has no state."""
        if self._history is None:
            return SamplerState.before(self.sampler) if self._iterator is None else None
        counts = None if self._occurrences is None else self._occurrences.counts
        return self._history.state_at(batches, self._head, counts)

    def skip(self, items: int, batches: int) -> None:
        """Skips what was delivered before a state was saved. Call it before the first ``next()``: it may restart the
        sampler's iteration.

        All skipped items count as occurrences. The skipped batches are not added to the number of batches yielded:
        `first` of the constructor includes them.

        Args:
            items: number of items of all ranks, delivered with another world size.
            batches: number of batches of each rank after these items.

        Raises:
            ValueError: fewer than `batches` batches follow the items.
        """
        wanted = items + batches * self._cut.stride
        passed = 0
        iter_from = getattr(self.sampler, "iter_from", None)
        if iter_from is not None and self._occurrences is None:
            passed = min(wanted, len(self.sampler))  # type: ignore[arg-type]
            if self._planned is not None:
                self._planned.jump(passed)
            self._head = list(itertools.islice(iter_from(0), self._cut.share.world_size))
            self._begin(iter_from(passed))
            self.asked = True
        while passed < wanted and (some := self._take_items(min(wanted - passed, _AT_ONCE))):
            passed += len(some)
            if self._occurrences is not None:
                self._name_batches(some, len(some))
        has = self._cut.batches(max(0, passed - items))
        if has < batches:
            raise ValueError(f"the state says {batches} batches were yielded, but this epoch has only {has}")

    def draw(self) -> None:
        """Takes the first item, so that the sampler draws its random numbers now instead of at the first batch."""
        if not (self._drawn or self._steps):
            self._drawn = self._request_items(1)

    def _take_items(self, count: int) -> list[object]:
        drawn, self._drawn = self._drawn[:count], self._drawn[count:]
        items = drawn + self._request_items(count - len(drawn))
        self._head += items[: self._cut.share.world_size - len(self._head)]
        return items

    def _request_items(self, count: int) -> list[object]:
        """Returns up to `count` items of the sampler."""
        if self._ended:
            return []
        if self.asked and self._at_once:
            return self._draw_from_sampler(count)
        with generators_held():
            before, self.before, self.asked = self.before, None, True
            if before is not None:
                before()
            return self._draw_from_sampler(count)

    def _draw_from_sampler(self, count: int) -> list[object]:
        try:
            if self._iterator is None:
                self._state_before = SamplerState.before(self.sampler)
                self._begin(iter(self.sampler))
            return list(itertools.islice(self._items, count))
        except BaseException:
            # torch's BatchSampler is a generator, which ends when it raises; a sampler of batches may be called again.
            self._ended = self._cut.batch_size is not None
            raise

    def _name_batches(self, items: list[object], named: int) -> list[OrderedBatch]:
        """Turns items into batches with their occurrences: one batch of all items, or one per item.

        Args:
            items: the items of a step; those from position `named` on repeat the order's first items.
            named: number of items that the sampler yielded.
        """
        made = []
        for number, item in enumerate(items if self._cut.batch_size is None else [items] if items else []):
            batch = self._check_item(item)
            indices = batch.indices
            if batch.is_other:
                made.append(batch)
                continue
            if self._planned is not None:
                occurrences = self._planned.take(len(indices))
            elif self._occurrences is not None:
                occurrences = self._occurrences.take(indices)
            else:
                places = np.full(len(indices), number) if self._cut.batch_size is None else np.arange(len(indices))
                occurrences = np.where(places < named, 0, 1 + (places - named) // max(1, len(self._head)))
            made.append(OrderedBatch(indices, occurrences, batch.asked, from_end=batch.from_end))
        return made

    def _check_item(self, named: object) -> OrderedBatch:
        """Returns the samples that an item names, without their occurrences."""
        indices, asked = as_indices(named, self._naming)
        if indices is None:
            return OrderedBatch(_NONE, _NONE, asked, is_other=True)
        if not indices.size:
            raise IndexError("the batch sampler yielded an empty batch")
        bad = indices[(indices < -self._length) | (indices >= self._length)]
        if bad.size:
            beyond = f"the sampler named index {bad[0]}, out of range for a dataset of {self._length} samples"
            if self._naming.others:  # torch raises when it makes the batch, after the samples before this one
                return OrderedBatch(_NONE, _NONE, asked, is_other=True, beyond="" if self._naming.live else beyond)
            raise IndexError(beyond)
        from_end = bool((indices < 0).any())
        indices = np.where(indices < 0, indices + self._length, indices) if from_end else indices
        return OrderedBatch(indices, _NONE, asked, from_end=from_end)
