"""Draws an epoch's batches of indices: counts them, keeps the samplers' states, and resumes in the middle."""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from types import GeneratorType
from typing import Any

import torch
from torch.utils.data import BatchSampler, RandomSampler

from headrace._base.types import State
from headrace._loading.epoch.sampler_state import is_stateful, restore_state, state_of
from headrace._loading.fallback.seeded_indices import SampleSeeds
from headrace._recipe.draws.seeded_sampler import sampler_chain
from headrace.sampler.distributed import RankSampler

Iterate = Callable[[Iterable[object]], Iterator[object]]  # returns the iterator of a sampler


@dataclass(frozen=True)
class IndexPosition:
    """Position in an epoch's batches of indices, counted from its beginning.

    Attributes:
        at: number of batches before `sampler` and `iterator`; 0 if the samplers have no state and are replayed from
            the start.
        upto: number of batches that were drawn.
        missing: numbers of batches in [at, upto) that had been drawn but not come back; they are delivered again.
        sampler, iterator: states of the index sampler and of its iterator, in torchdata's layout.
        occurrences: with these states, what `SampleSeeds.pack_counts` returned.
        offset: samples of all ranks before the first of these batches, delivered with another number of ranks.
    """

    at: int = 0
    upto: int = 0
    missing: tuple[int, ...] = ()
    sampler: State | None = None
    iterator: State | None = None
    occurrences: State | None = None
    offset: int = 0

    @property
    def has_states(self) -> bool:
        """Whether a sampler has its own state."""
        return self.sampler is not None or self.iterator is not None

    @property
    def handed_out(self) -> int:
        """Number of batches that have come back."""
        return self.upto - len(self.missing)


class IndexBatches:
    """Iterator over the batches of indices of one epoch.

    Args:
        sampler: the loader's batch sampler; its sampler if samples are not batched.
        position: position at which to begin.
        keep: number of batches between two kept states of the samplers; 0: only the first and the newest are kept.
        before: called before the first batch is drawn.
        seeds: prepares each batch, so that samples are seeded; None: the sampler's items are returned.
    """

    def __init__(
        self,
        sampler: Any,
        position: IndexPosition,
        keep: int,
        before: Callable[[], None],
        seeds: SampleSeeds | None = None,
    ) -> None:
        self._sampler, self._keep, self._seeds = sampler, keep, seeds
        iterate = iter if seeds is None else seeds.iterate
        self._unbegun: tuple[IndexPosition, Callable[[], None]] | None = position, before
        self._drawn, self._offset = position.at, position.offset
        self._samples = 0  # in the batches drawn by torch's BatchSampler
        self._ahead: deque[tuple[int, object]] = deque()  # drawn, not requested yet
        self._asked: dict[int, int] = {}  # batches that are not back: position in the order of requests -> number
        self._count = 0  # number of requests
        self._may: bool | None = None  # see `_may_have_states`
        self._ended = False
        restore_state(sampler, position.sampler, "sampler")
        self._inner: _Inner | None = None
        self._within: Any = None  # a copy of the batch sampler around `_inner`
        if type(sampler) is BatchSampler:
            state = {} if position.iterator is None else position.iterator
            self._samples = state.get("samples_yielded", 0) if isinstance(state, dict) else -1
            if not isinstance(self._samples, int) or self._samples < 0:
                raise ValueError(f"the state is damaged: the state of its batch sampler is {state!r:.80}")
            self._inner = _Inner(sampler.sampler, state, iterate)
            self._within = copy.copy(sampler)
            self._within.sampler = self._inner
            self._items: Iterator[Any] = iter(self._within)
        else:
            self._items = _resume_sampler(sampler, position.iterator, iterate)
        if seeds is not None:
            seeds.restore(position.occurrences)
        self._marks = deque(
            [replace(position, upto=position.at, missing=()) if position.has_states else self._position_with_states()]
        )

    def __iter__(self) -> IndexBatches:
        return self

    def __next__(self) -> object:
        number, item = self._draw() if self._unbegun is None and not self._ahead else self._next()
        self._asked[self._count] = number
        self._count += 1
        return item

    def begin(self) -> None:
        """Makes the samplers' iterators now instead of with the first batch."""
        if self._inner is not None and self._inner.iterator is None:
            iter(self._inner)

    def draw(self) -> None:
        """Draws the first batch now instead of on request."""
        with contextlib.suppress(StopIteration):
            self._ahead.appendleft(self._next())

    def drop_returned(self, out: Collection[int]) -> None:
        """Records that all requested batches except `out` (counted by request, from 0) have come back."""
        if not out:
            self._asked.clear()
            return
        for one in [one for one in self._asked if one not in out]:
            del self._asked[one]

    @property
    def begun(self) -> bool:
        """Whether anything was drawn."""
        return self._unbegun is None

    @property
    def handed_out(self) -> int:
        """Number of the epoch's batches that have come back."""
        return self._drawn - len(self._ahead) - len(self._asked)

    @property
    def number(self) -> int:
        """Number of the batch requested last."""
        return self._asked[self._count - 1]

    def position(self, *, ended: bool = False, step: int | None = None) -> IndexPosition:
        """Returns the position from which a resumed epoch draws the batches that have not come back.

        Args:
            ended: the epoch has ended; returns the samplers' current position.
            step: draw all batches from this number on, even if they have come back.
        """
        if ended:
            return replace(self._position_with_states(), upto=self._drawn)
        missing = sorted([*self._asked.values(), *(number for number, _ in self._ahead)])
        upto = self._drawn
        while missing and missing[-1] == upto - 1:
            upto = missing.pop()
        if step is not None and not missing:
            upto = min(upto, step)
        first = missing[0] if missing else upto
        while len(self._marks) > 1 and self._marks[1].at <= first:
            self._marks.popleft()
        if self._seeds is not None:
            self._seeds.forget(self._marks[0].at)
        now = first == self._drawn and not self._ended and self._unbegun is None
        mark = self._position_with_states() if now else self._marks[0]
        counts = self._seeds.pack_counts(mark.at) if self._seeds is not None and mark.has_states else None
        return replace(mark, upto=upto, missing=tuple(missing), occurrences=counts)

    # ---- drawing -----------------------------------------------------------------------------------------------------

    def _next(self) -> tuple[int, object]:
        unbegun, self._unbegun = self._unbegun, None
        if unbegun is not None:
            self._skip_to_position(*unbegun)
        return self._ahead.popleft() if self._ahead else self._draw()

    def _skip_to_position(self, position: IndexPosition, before: Callable[[], None]) -> None:
        before()
        wanted, missing = position.upto - self._drawn, set(position.missing)
        if wanted > 0 and not position.has_states:
            self._refuse_hidden_states()
        if (wanted > 0 or position.offset) and not missing and self._skip_without_drawing(position.upto):
            return
        if position.offset:
            raise ValueError("the state is of another number of ranks, which this sampler cannot go on from")
        for number, item in itertools.islice(iter(self._draw_or_none, None), wanted):
            if number in missing:
                self._ahead.append((number, item))
        if self._drawn < position.upto:
            raise ValueError(
                f"the state says {position.upto} batches were drawn, but the samplers have only {self._drawn}"
            )

    def _refuse_hidden_states(self) -> None:
        hidden = next((type(one).__qualname__ for one in sampler_chain(self._sampler) if is_stateful(one)), None)
        if hidden is not None:
            raise ValueError(
                f"the order of {type(self._sampler).__qualname__} cannot be resumed: it draws from {hidden}, which has "
                "a state, but has none itself; give it state_dict and load_state_dict"
            )

    def _skip_without_drawing(self, upto: int) -> bool:
        """Skips to batch `upto` without drawing, if the sampler has ``iter_from``. Returns whether it did."""
        whole = self._sampler if self._inner is None else self._inner.sampler
        if self._drawn or not hasattr(whole, "iter_from") or not (self._seeds is None or self._seeds.can_jump):
            return False
        if self._inner is None:
            samples = min(upto, len(whole))
            self._items = _iterate_from(whole, samples, self._offset)
        else:
            self._samples = samples = min(upto * self._sampler.batch_size, len(whole))
            self._inner.start, self._inner.offset = samples, self._offset
        if self._seeds is not None:
            self._seeds.jump(samples, self._offset)
        self._drawn = upto
        return True

    def _draw(self) -> tuple[int, object]:
        if self._within is not None:  # a program may have changed them
            self._within.batch_size, self._within.drop_last = self._sampler.batch_size, self._sampler.drop_last
        try:
            item = next(self._items)
        except StopIteration:
            self._ended = True
            raise
        self._drawn += 1
        if self._inner is not None:
            self._samples += len(item)
        if self._keep and self._drawn % self._keep == 0 and self._may_have_states():
            mark = self._position_with_states()
            if mark.has_states:
                self._marks.append(mark)
        number = self._drawn - 1
        if self._seeds is None:
            return number, item
        prepared = self._seeds.take(number, item)
        if not self._have_states():
            self._seeds.forget(self._drawn)
        return number, prepared

    def _draw_or_none(self) -> tuple[int, object] | None:
        try:
            return self._draw()
        except StopIteration:
            return None

    def _may_have_states(self) -> bool:
        """Whether the samplers have states, which is known once they are iterated."""
        if self._may is None:
            self._may = self._inner is None or self._have_states()
        return self._may

    def _have_states(self) -> bool:
        inner = self._inner
        one, other = (self._sampler, self._items) if inner is None else (inner.sampler, inner.iterator)
        return is_stateful(one) or is_stateful(other)

    def _position_with_states(self) -> IndexPosition:
        """Returns the current position with the samplers' states; the beginning if they have none."""
        inner, state = self._inner, None
        if inner is None:
            state, of_iterator = state_of(self._sampler), state_of(self._items)
        elif self._have_states():
            of_iterator = {"samples_yielded": self._samples}
            if is_stateful(inner.sampler):
                of_iterator["sampler_state"] = state_of(inner.sampler)
            if is_stateful(inner.iterator):
                of_iterator["sampler_iter_state"] = state_of(inner.iterator)
            if inner.ended:
                of_iterator["ended"] = True
        else:
            of_iterator = None
        if state is of_iterator is None:
            return IndexPosition(offset=self._offset)
        return IndexPosition(self._drawn, sampler=state, iterator=of_iterator)


class _Inner:
    """Wraps the sampler inside torch's BatchSampler to keep its iterator accessible for its state.

    Args:
        state: state to begin with. It records whether the sampler has ended: torch asks for one index too many to
            complete the last batch, and ``iter`` would start an exhausted sampler again.
        iterate: called for ``iter``.
    """

    def __init__(self, sampler: Any, state: State, iterate: Iterate) -> None:
        self.sampler, self._state, self._iterate = sampler, state, iterate
        self.start, self.offset, self.ended = 0, 0, False
        self.iterator: Iterator[object] | None = None

    def __iter__(self) -> Iterator[object]:
        restore_state(self.sampler, self._state.get("sampler_state"), "sampler")
        of_iterator = self._state.get("sampler_iter_state")
        if self.start or self.offset:
            self.iterator = _iterate_from(self.sampler, self.start, self.offset)
        elif not self._state.get("ended") or of_iterator is not None:
            self.iterator = _resume_sampler(self.sampler, of_iterator, self._iterate)
        return iter(()) if self._state.get("ended") else self._iterate_and_note_end()

    def _iterate_and_note_end(self) -> Iterator[object]:
        assert self.iterator is not None
        # Not `iter` of another class, which restarts some iterators.
        again = isinstance(self.iterator, GeneratorType)
        items = self.iterator if again else map(next, itertools.repeat(self.iterator))
        return itertools.chain(items, self._note_end())

    def _note_end(self) -> Iterator[object]:
        self.ended = True
        return
        yield


def _iterate_from(sampler: Any, start: int, offset: int) -> Iterator[object]:
    """Iterates over a sampler, or a rank's share of one, from sample `start` after `offset` samples of all ranks."""
    if isinstance(sampler, RankSampler):
        return sampler.share.iterate(sampler.whole, start, offset)
    iterator: Iterator[object] = sampler.iter_from(min(start + offset, len(sampler)))
    return iterator


def _resume_sampler(sampler: Iterable[object], state: State | None, iterate: Iterate) -> Iterator[object]:
    """Returns an iterator of a sampler, restored to `state` if there is one."""
    if state is not None and type(sampler) is RandomSampler and not is_stateful(sampler):
        # A state by torchdata's own RandomSampler, which has the same order as torch's for the same generator.
        again = copy.copy(sampler)
        again.generator = torch.Generator("cpu")
        again.generator.set_state(state["generator"])
        return itertools.islice(iter(again), state["yielded"], None)
    iterator = iterate(sampler)
    restore_state(iterator, state, "sampler's iterator")
    return iterator


def position_before_epoch(sampler: object) -> IndexPosition:
    """Returns the position of an epoch that has not begun, without making an iterator."""
    if type(sampler) is not BatchSampler:
        return IndexPosition(sampler=state_of(sampler))
    state = state_of(sampler.sampler)
    return IndexPosition(iterator=None if state is None else {"samples_yielded": 0, "sampler_state": state})


def restore_ended(sampler: object, position: IndexPosition) -> None:
    """Restores samplers with states to where they were when an epoch had ended."""
    if position.has_states:
        IndexBatches(sampler, replace(position, upto=position.at, missing=()), 0, lambda: None).begin()
