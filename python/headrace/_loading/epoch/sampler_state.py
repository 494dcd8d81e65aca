"""States of samplers that implement torchdata's protocol: ``state_dict`` and ``load_state_dict``."""

from __future__ import annotations

import copy
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import BatchSampler

from headrace._base.types import State
from headrace._recipe.draws.seeded_sampler import sampler_chain

Int64s = npt.NDArray[np.int64]


class Stateful(Protocol):
    """An object that implements the protocol."""

    def state_dict(self) -> State: ...

    def load_state_dict(self, state: State, /) -> None: ...


def is_stateful(one: object) -> TypeGuard[Stateful]:
    """Whether an object implements the protocol."""
    return callable(getattr(one, "state_dict", None)) and callable(getattr(one, "load_state_dict", None))


def state_of(one: object) -> State | None:
    """Returns a copy of the object's state, independent of its further changes; None if it has no state."""
    return copy.deepcopy(one.state_dict()) if is_stateful(one) else None


def restore_state(one: object, state: State | None, what: str) -> None:
    """Restores an object's state; does nothing if `state` is None.

    Args:
        what: kind of the object, for the message.

    Raises:
        ValueError: there is a state, but the object has no ``load_state_dict``.
    """
    if state is None:
        return
    if not is_stateful(one):
        raise ValueError(
            f"the state contains one for the {what}, but {type(one).__qualname__} has no state_dict and load_state_dict"
        )
    one.load_state_dict(state)


def _find_stateful_sampler(sampler: Iterable[object]) -> Stateful | None:
    """Returns the outermost sampler of a chain that has a state; None if there is none."""
    return next((one for one in sampler_chain(sampler) if is_stateful(one)), None)


def _may_have_drawn_ahead(sampler: Iterable[object], keeper: object) -> bool:
    """Whether a stateless outer sampler may have drawn ahead from `keeper`, by a number of items it does not reveal."""
    above = itertools.takewhile(lambda one: one is not keeper, sampler_chain(sampler))
    return keeper is not None and any(type(one) is not BatchSampler for one in above)


@dataclass(frozen=True)
class SamplerState:
    """The state of an order's sampler after some of its batches.

    Attributes:
        sampler, iterator: state of the outermost sampler that has one, and of the iterator; None if there is none.
        head: the first items of the order, which may be repeated at its end.
        counts: how often the epoch had yielded each sample, uint8 or int32 (n,); None if not counted.
        hidden: class name of the stateful sampler if its state cannot be used, because a stateless sampler draws ahead
            from it; otherwise "".
    """

    sampler: State | None = None
    iterator: State | None = None
    head: tuple[object, ...] = ()
    counts: torch.Tensor | None = None
    hidden: str = ""

    @classmethod
    def before(cls, sampler: Iterable[object]) -> SamplerState | None:
        """Returns the state of a sampler before iteration; None if it has no state."""
        keeper = _find_stateful_sampler(sampler)
        return None if keeper is None else cls(state_of(keeper))

    @classmethod
    def of(cls, sampler: Iterable[object], items: Iterator[object]) -> SamplerState | None:
        """Returns the state after `items`, the sampler's iterator, yielded a whole batch; None if neither has one."""
        keeper, own = _find_stateful_sampler(sampler), state_of(items)
        if keeper is None and own is None:
            return None
        hidden = own is None and _may_have_drawn_ahead(sampler, keeper)
        return cls(None if hidden else state_of(keeper), own, hidden=type(keeper).__qualname__ if hidden else "")

    def check(self, sampler: Iterable[object]) -> None:
        """Raises ValueError if a sampler cannot resume from this state."""
        name = type(sampler).__qualname__
        if self.hidden:
            raise ValueError(
                f"the order of {name} cannot be resumed: it draws ahead from {self.hidden}, which has a state, but has "
                "none itself; give it state_dict and load_state_dict"
            )
        if self.sampler is not None and _find_stateful_sampler(sampler) is None:
            raise ValueError(f"the state contains a sampler's state, but {name} has no load_state_dict")

    def begin(self, sampler: Iterable[object]) -> Iterator[object]:
        """Returns an iterator over the sampler that resumes where the state was taken.

        Raises:
            ValueError: the sampler or its iterator cannot resume from this state.
        """
        self.check(sampler)
        keeper = _find_stateful_sampler(sampler)
        if self.sampler is not None and keeper is not None:
            keeper.load_state_dict(self.sampler)
        items = iter(sampler)
        if self.iterator is not None:
            iterator: object = items
            if not is_stateful(iterator):
                raise ValueError(
                    f"the state contains an iterator's state, but iter({type(sampler).__qualname__}) has no "
                    "load_state_dict"
                )
            iterator.load_state_dict(self.iterator)
        return items


class History:
    """Keeps the sampler's state after each batch that may still become the last one delivered.

    The loader requests batches from the sampler ahead of the one that it delivers, so the sampler's current state is
    too far.

    Args:
        first: number of batches of the epoch before the first one that the sampler's iterator yields.
        before: the sampler's state before the iterator was made.
    """

    @classmethod
    def of(
        cls, sampler: Iterable[object], items: Iterator[object], first: int, before: SamplerState | None
    ) -> History | None:
        """Returns a History, or None if neither the sampler nor its iterator has a state."""
        has = before is not None or is_stateful(items) or _find_stateful_sampler(sampler) is not None
        return cls(first, before) if has else None

    def __init__(self, first: int, before: SamplerState | None) -> None:
        self._kept: deque[tuple[int, SamplerState | None, Int64s]] = deque([(first, before, np.empty(0, np.int64))])

    def note(self, batches: int, state: SamplerState | None, named: Int64s, delivered: int) -> None:
        """Records the sampler's state after a batch and forgets the states that are no longer needed.

        Args:
            batches: number of batches of the epoch up to this one.
            state: the sampler's state after them.
            named: indices of the newest batch, of all ranks, int64 (n,).
            delivered: number of batches delivered.
        """
        self._kept.append((batches, state, named))
        while self._kept[0][0] < delivered:
            self._kept.popleft()

    def state_at(self, batches: int, head: list[object], counts: npt.NDArray[np.uint32] | None) -> SamplerState | None:
        """Returns the state after the epoch's first `batches`; None if the sampler has none.

        Args:
            batches: number of batches.
            head: as in SamplerState.
            counts: how often the order has yielded each sample up to now, uint32 (n,); None if not counted.
        """
        state = next((state for number, state, _ in self._kept if number == batches), None)
        if state is None:
            return None
        if counts is not None:
            counts = counts.copy()
            for number, _, named in self._kept:
                if number > batches:
                    np.subtract.at(counts, named, 1)
            counts = counts.astype(np.uint8 if counts.max(initial=0) < 256 else np.int32)
        return replace(state, head=tuple(head), counts=None if counts is None else torch.from_numpy(counts))
