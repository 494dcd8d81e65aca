"""Number, seed and order of a loader's epochs; draws from torch's generators as torch's DataLoader does."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import torch

from headrace._loading.epoch.checkpoint import Progress, Resume, Start
from headrace._loading.epoch.order import Cut, EpochOrder, OrderedBatch
from headrace._loading.epoch.sampler_items import Naming
from headrace._loading.epoch.sampler_kinds import follows_from_its_epoch
from headrace._loading.epoch.sampler_setup import (
    GlobalOrder,
    foreign_epoch,
    headrace_samplers,
    late_epoch,
    order_of,
    rank_of,
    requested_epoch,
    samplers_of,
    set_begun_epoch,
)
from headrace._loading.epoch.sampler_state import SamplerState, is_stateful
from headrace._loading.epoch.torch_loader import Ordering
from headrace._recipe.draws.generator_states import RandomState, draw_base_seed, generators_of
from headrace._recipe.draws.python_randomness import generators_held
from headrace._recipe.draws.seeded_sampler import Seeded, sampler_chain, set_epoch_of_samplers

T = TypeVar("T")

_DATASETS = ("data_source", "dataset")  # samplers' attributes that hold the dataset; a sampler's copy shares it


class Epochs:
    """The epochs of one loader.

    Attributes:
        naming: how the items of the samplers are read.

    Args:
        loader: a torch DataLoader; its samplers, batch size and generator are read.
        length: number of samples in the dataset.
        seed: seed of order and augmentation. None: a new one is drawn for each epoch.
        keeps_base_seed: whether only the first epoch draws the base seed, as torch does with persistent workers.
    """

    def __init__(self, loader: Ordering, length: int, seed: int | None, *, keeps_base_seed: bool) -> None:
        self._length, self._seed = length, seed
        self._keeps_base_seed = keeps_base_seed
        self._next = 0
        self._base_seed: int | None = None
        self._resume: Resume | None = None
        self._progress: Progress | None = None  # progress of the newest epoch, until another one is requested
        self._newest: EpochOrder | None = None  # order of the newest epoch; None in a copy of the loader
        self._sampler_state: SamplerState | None = None  # in a copy of the loader: the sampler's state at `_progress`
        self._sampler: Iterable[object] = []  # `follow` sets it
        self._batch_sampler: Iterable[object] | None = None
        self._generator: torch.Generator | None = None
        self.naming = Naming()
        self.follow(loader, length)

    def follow(self, loader: Ordering, length: int | None) -> None:
        """Adopts the loader's current samplers and generator, which a subclass may have replaced, and the dataset's
        number of samples; None: it is the same."""
        self._length = self._length if length is None else length
        now = loader.sampler, loader.batch_sampler, loader.generator
        if all(a is b for a, b in zip(now, (self._sampler, self._batch_sampler, self._generator), strict=True)):
            return
        self._sampler, self._batch_sampler, self._generator = now
        self._samplers = samplers_of(self._sampler, self._batch_sampler)
        self._followers = headrace_samplers(self._samplers)
        self._generators = generators_of(self._generator, self._samplers)

    @property
    def upcoming(self) -> int:
        """Number of the epoch that `begin` would begin."""
        asked = requested_epoch(self._followers)
        return self._next if asked is None else asked

    @property
    def under_way(self) -> bool:
        """Whether an epoch was begun and has batches left."""
        return self._progress is not None and not self._progress.finished and self._resume is None

    @property
    def resumes(self) -> bool:
        """Whether `begin` would continue the epoch that a state was loaded for."""
        return self._resume is not None and self._resume.start.epoch == self.upcoming

    @property
    def rank(self) -> int:
        """This process's rank in a distributed job, whether its samplers split their order or not."""
        return rank_of(self._samplers)

    @property
    def generators(self) -> int:
        """Number of torch.Generators that decide the order."""
        return len(self._generators)

    def begin(self, ahead: int = 0) -> tuple[Progress, EpochOrder]:
        """Begins the next epoch, or continues the one that a state was loaded for.

        Args:
            ahead: number of batches that the sampler is read ahead; 0: each is read when it is requested.
        """
        with generators_held():
            progress, order = self._begin(ahead)
        order.progress = progress
        self._resume, self._progress, self._newest = None, progress, order
        self._next = progress.epoch + 1
        self._base_seed = progress.start.base_seed
        return progress, order

    def renew(self, progress: Progress) -> EpochOrder | None:
        """Restarts the current epoch if ``set_epoch`` requested another one after it began; otherwise returns None.

        torch honours such a call up to the first batch. Returns the order of the requested epoch, and overwrites
        `progress` with that epoch's.
        """
        if progress is not self._progress or late_epoch(self._followers, progress.epoch) is None:
            return None
        # Marked as begun, so that the base seed is not drawn a second time.
        now, before = self._upcoming_start(), progress.start
        start = replace(now, begun=True, base_seed=before.base_seed, random=before.random, late=now.random)
        ahead = 0 if self._newest is None else self._newest.ahead
        with generators_held():
            begun, order = self._make_order(Resume(start), ahead)
            _draw_first_items(order, ahead)
        order.progress, self._newest = progress, order
        begun.before, begun.pace, begun.of_rank = progress.before, progress.pace, progress.of_rank
        self._next = begun.epoch + 1
        vars(progress).update(vars(begun))
        self._progress = progress
        return order

    def peek(self, batches: int | None = None, ahead: int = 0) -> tuple[Progress, list[OrderedBatch]]:
        """Returns what `begin` would return, with the order's first `batches` (None: all) as a list.

        Batches whose numbers are in ``progress.resumed`` were delivered earlier; they come on top of `batches`. Leaves
        all generators and samplers unchanged.
        """
        with generators_held():
            return self._peek(batches, ahead)

    def _peek(self, batches: int | None, ahead: int) -> tuple[Progress, list[OrderedBatch]]:
        before = RandomState.now(self._generators)
        requests = [(one, one.epoch, one.requested) for one in self._followers]
        try:
            progress, order = self._begin(ahead, peek=True)
            wanted = None if batches is None else batches + len(progress.resumed)
            return progress, list(itertools.islice(order, wanted))
        finally:
            before.restore(self._generators)
            for one, epoch, asked in requests:
                one.adopt(epoch)
                if asked is not None:
                    one.set_epoch(asked)

    def _begin(self, ahead: int, *, peek: bool = False) -> tuple[Progress, EpochOrder]:
        resume = self._resume
        if resume is None or resume.start.epoch != self.upcoming:
            progress, order = self._make_order(Resume(self._upcoming_start()), ahead, peek=peek)
            _draw_first_items(order, ahead)
            if not order.asked:
                order.before = functools.partial(
                    _note_late_states, progress, self._generators, RandomState.now(self._generators)
                )
            return progress, order
        # Replays the order from the generators' saved states. The loader's own generators keep the state that this
        # leaves. torch's default generator belongs to the caller: it advances only if the saved epoch had not begun,
        # and if the caller has restored the generator's saved state.
        start, default = resume.start, torch.get_rng_state()
        moved = start.begun or not torch.equal(default, start.random.default)
        with torch.random.fork_rng(devices=[]) if moved else nullcontext():
            start.random.restore(self._generators)
            progress, order = self._make_order(resume, ahead, peek=peek)
            if start.late is not None:
                start.late.restore(self._generators)
            if resume.sampler is None:
                order.skip(resume.offset, resume.position)
            # Not here if the sampler was not asked then, and the caller's generator is as it was.
            later = not moved if start.late is None else torch.equal(default, start.late.default)
            later = later and not (start.begun and start.asked)
            if not later:
                _draw_first_items(order, ahead or not order.asked)
        if later:
            _draw_first_items(order, ahead)
        if not order.asked:
            order.before = functools.partial(_note_late_states, progress, self._generators, None)
        progress.settled = progress.first = resume.position
        progress.resumed, progress.of_rank = resume.overtaking, resume.of_rank
        return progress, order

    def _make_order(self, at: Resume, ahead: int, *, peek: bool = False) -> tuple[Progress, EpochOrder]:
        start, offset = at.start, at.offset
        for one in self._followers:
            one.adopt(start.epoch)
        order_of_all = self.order()
        items, cut = order_of_all.items, order_of_all.cut
        if peek:
            items = self._copy_stateful(items)
        drew = start.drew_seed if start.begun else not (self._keeps_base_seed and start.base_seed is not None)
        untouched = SamplerState.before(items)
        # torch calls `iter` on what yields the batches: once, or before and after the base seed where processes make
        # them. Its BatchSampler calls `iter` on the sampler inside with the first batch.
        outer = cut.batch_size is None and at.sampler is None
        iterator: Iterator[object] | None = iter(items) if outer else None
        drawn = draw_base_seed(self._generator) if drew else start.base_seed
        if outer and ahead and drew:
            iterator = iter(items)
        seed = self._seed if self._seed is not None else drawn
        assert seed is not None
        order = EpochOrder(
            items,
            order_of_all.unique,
            self._length,
            cut,
            at.sampler,
            at.position,
            self.naming,
            ahead=ahead,
            iterator=iterator,
            untouched=untouched,
        )
        begun = Start(start.epoch, True, drawn, drew, start.sampler_epoch, start.random, start.late)
        whole, after_offset = (self._count_batches(items, cut, passed) for passed in (0, offset))
        return Progress(begun, seed, whole, cut, offset, after_offset), order

    def _copy_stateful(self, sampler: T) -> T:
        """Returns a sampler to look ahead with: itself, or a copy if iterating would change its own state."""
        if not any(map(is_stateful, sampler_chain(sampler))):
            return sampler
        kept = [*self._generators, *(vars(one).get(name) for one in sampler_chain(sampler) for name in _DATASETS)]
        return copy.deepcopy(sampler, {id(one): one for one in kept if one is not None})

    def order(self) -> GlobalOrder:
        """Returns the order of all ranks together."""
        return order_of(self._sampler, self._batch_sampler, self._length, self._seed)

    def _upcoming_start(self) -> Start:
        with generators_held():
            now = RandomState.now(self._generators)
        return Start(self.upcoming, False, self._base_seed, False, foreign_epoch(self._samplers), now)

    @staticmethod
    def _count_batches(items: Any, cut: Cut, offset: int) -> int:
        """Returns the number of batches after the first `offset` items; -1 if it is unknown."""
        try:
            return cut.batches(max(0, len(items) - offset))
        except TypeError:  # a sampler without a length
            return -1

    def __copy__(self) -> Epochs:
        """Copies the progress too: each copy counts only the batches that it yields itself."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        copied._progress = None if self._progress is None else self._progress.copy_progress()
        if copied._progress is not None and self._newest is not None:
            copied._progress.start = self._start_with_states(copied._progress.start)
            copied._sampler_state = self._newest.state_at(copied._progress.position)
        copied._newest = None
        return copied

    # ---- set_epoch and state -----------------------------------------------------------------------------------------

    def set(self, epoch: int) -> None:
        """Makes `epoch` the next epoch, also for the samplers."""
        self._next = epoch
        if self._resume is not None and self._resume.start.epoch != epoch:
            self._resume = None
        self._progress = None
        set_begun_epoch(self._samplers, epoch)

    def continue_at(self, epoch: int) -> None:
        """Makes `epoch` the next epoch, which the samplers know already."""
        self._next, self._progress, self._resume = epoch, None, None

    def position(self) -> Resume:
        """Returns where a loader has to resume to deliver the remaining batches."""
        progress, asked = self._progress, requested_epoch(self._followers)
        if self._resume is not None and asked in (None, self._resume.start.epoch):
            return self._resume
        late = progress is not None and progress.untouched and asked not in (None, progress.epoch)
        if self._resume is not None or progress is None or progress.finished or late:  # late: `renew` would restart
            return Resume(self._upcoming_start(), sampler=SamplerState.before(self.order().items))
        state = self._sampler_state if self._newest is None else self._newest.state_at(progress.position)
        start = self._start_with_states(progress.start)
        return Resume(
            start,
            progress.position,
            progress.offset,
            progress.after_offset,
            state,
            progress.overtaking,
            progress.of_rank,
        )

    def _start_with_states(self, start: Start) -> Start:
        """Returns the start of the newest epoch; if its sampler was not asked yet, with the generators' states."""
        if self._newest is None or self._newest.asked:
            return start
        with generators_held():
            return replace(start, late=RandomState.now(self._generators), asked=False)

    def resume(self, at: Resume) -> None:
        """Makes the next `begin` resume there.

        Raises:
            ValueError: the loader's sampler cannot resume from this state.
        """
        if at.sampler is not None:
            at.sampler.check(self.order().items)
        self._resume, self._progress = at, None
        self._next, self._base_seed = at.start.epoch, at.start.base_seed
        for one in self._followers:
            one.adopt(at.start.epoch)
        if at.start.sampler_epoch is not None:
            set_epoch_of_samplers(
                (one for one in self._samplers if not isinstance(one, Seeded)), at.start.sampler_epoch
            )


def _draw_first_items(order: EpochOrder, ahead: int) -> None:
    """Asks the sampler for its first items if it is read ahead, or if nothing but its epoch decides its order."""
    order.read(0)
    if ahead or follows_from_its_epoch(order.sampler):
        order.draw()


def _note_late_states(progress: Progress, generators: Sequence[torch.Generator], settled: RandomState | None) -> None:
    """Notes the generators' states right before the sampler is asked, if they are not `settled` any more."""
    now = RandomState.now(generators)
    if settled is None or not now.same(settled):
        progress.start = replace(progress.start, late=now)
